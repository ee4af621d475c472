// Makes the writes of a store hang until the test resumes them.

import type { TestContext } from 'node:test';
import { eventually, type Scrip } from './running-service.ts';

export interface StalledWrites {
  resume(): void;
  waiting(count: number): Promise<void>;
}

export function stallWrites(test: TestContext, scrip: Scrip): StalledWrites {
  const { ledger: store } = scrip.service.stores;
  const write = store.write.bind(store);
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const stalled = test.mock.method(store, 'write', async (...[commands, onDecided]: Parameters<typeof write>) => {
    taken += commands.length;
    await promise;
    return write(commands, onDecided);
  });
  const resume = () => {
    stalled.mock.restore();
    resolve();
  };
  test.after(resume);
  scrip.atStop(resume);
  const queued = async () => {
    const { text } = await scrip.call('GET', '/metrics');
    return Number(/^scrip_queue_commands (\d+)$/m.exec(text)?.[1]);
  };
  return {
    resume,
    waiting: (count) => eventually(async () => taken + (await queued()) >= count, `${count} commands are waiting`),
  };
}
