// A store that takes writes and does not go on with them until it is told to, as a disk that hangs would.

import type { TestContext } from 'node:test';
import { eventually, type Scrip } from './running-service.ts';

export interface StalledWrites {
  goOn(): void;
  /** Resolves when so many commands have come in, since the stall, and wait for the store. */
  waiting(count: number): Promise<void>;
}

/** Goes on by itself, and lets go of the store, when the test is over. */
export function stallWrites(test: TestContext, scrip: Scrip): StalledWrites {
  const { store } = scrip.service;
  const write = store.write.bind(store);
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const stalled = test.mock.method(store, 'write', async (...[commands, onDecided]: Parameters<typeof write>) => {
    taken += commands.length;
    await promise;
    return write(commands, onDecided);
  });
  const goOn = () => {
    stalled.mock.restore();
    resolve();
  };
  test.after(goOn);
  scrip.atStop(goOn);
  const queued = async () => {
    const { text } = await scrip.call('GET', '/metrics');
    return Number(/^scrip_queue_commands (\d+)$/m.exec(text)?.[1]);
  };
  return {
    goOn,
    waiting: (count) => eventually(async () => taken + (await queued()) >= count, `${count} commands wait`),
  };
}
