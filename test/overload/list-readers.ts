// Measures the response times of balance reads and of writes while clients read long lists.

import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from './open-loop.ts';
import { generatorFor, type Loaded, readOf, requestOf, sendAll, watchMemory } from './pressure.ts';
import { gather, type ReadingCrowd } from './reading-crowd.ts';

const WRITERS = 16;
const AT_ONCE = 5_000;

export interface Reading {
  readonly clients: number;
  readonly lists: number;
  readonly transactions: number;
  readonly pace: ReadingCrowd['pace'];
}

export const READINGS: readonly Reading[] = [
  { clients: 500, lists: 9, transactions: 4_000, pace: 'nothing' },
  { clients: 500, lists: 1, transactions: 20_000, pace: 'nothing' },
  { clients: 500, lists: 1, transactions: 20_000, pace: 'slowly' },
  { clients: 200, lists: 20, transactions: 20_000, pace: 'at full speed' },
];

export async function* besideReaders(
  loaded: Loaded,
  readings: readonly Reading[],
  seconds: number,
): AsyncGenerator<string> {
  yield `Without list readers: ${await others(loaded, seconds)}`;
  for (const { clients, lists, transactions, pace } of readings) {
    const endUser = await historyOf(loaded, transactions);
    const memory = watchMemory(loaded.server);
    const bytes = readOf(loaded.key, '/get-all-user-transactions', endUser).repeat(lists);
    const leave = await gather({ port: loaded.server.port, clients, bytes, pace });
    const found = await others(loaded, seconds);
    const { most } = memory();
    yield `${clients} clients that request ${lists} lists of ${transactions} transactions and read ${pace}: ${found}; memory at most ${most} MiB, ${await leave()} MiB were read`;
    await sleep(500);
  }
}

/** All transactions use one cycle, because most end users have few cycles. */
export async function historyOf({ server, key }: Loaded, transactions: number): Promise<string> {
  const end_user_id = crypto.randomUUID();
  const add = requestOf(key, '/add', { end_user_id, amount: transactions });
  const subtract = requestOf(key, '/subtract', { end_user_id, amount: 1 });
  for (let left = transactions; left > 0; ) {
    const some = left === transactions ? [add] : Array(Math.min(left, AT_ONCE)).fill(subtract);
    left -= some.length;
    const { answers } = await sendAll(server, some);
    if (answers.get(200) !== some.length) throw new Error(`writing a history failed: ${[...answers]}`);
  }
  return end_user_id;
}

async function others(loaded: Loaded, seconds: number): Promise<string> {
  const { server, key, endUsers } = loaded;
  const writers = generatorFor(loaded, WRITERS);
  const end = performance.now() + seconds * 1_000;
  const written = writers.closedLoop(WRITERS, seconds);
  const one = async (request: string) => {
    const waits: number[] = [];
    while (waits.length === 0 || performance.now() < end) {
      const asked = performance.now();
      const { answers } = await sendAll(server, [request]);
      if (answers.get(200) !== 1) throw new Error(`a request during the load returned ${[...answers.keys()]}`);
      waits.push(performance.now() - asked);
    }
    return spread(waits);
  };
  const [reads, writes, { doneInTime, latencies }] = await Promise.all([
    one(readOf(key, '/get-active-balance', endUsers[0] as string)),
    one(requestOf(key, '/subtract', { end_user_id: endUsers[1], amount: 1 })),
    written,
  ]);
  writers.close();
  const rate = Math.round(doneInTime / seconds);
  return `a balance takes ${reads}, a subtraction ${writes}, ${WRITERS} writers make ${rate} writes/s, each in ${spread(latencies.get(200) ?? [])}`;
}

function spread(waits: readonly number[]): string {
  const sorted = waits.toSorted((a, b) => a - b);
  return `${[0.5, 0.99, 1].map((share) => percentile(sorted, share).toFixed(1)).join(', ')} ms`;
}
