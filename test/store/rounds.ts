// Two processes begin rounds at the same instants, to find faults that occur only when both do the same at once.

import { setTimeout as sleep } from 'node:timers/promises';

export const ROUNDS = 40;
/** Opening a new ledger takes less time than a round. */
const ROUND_MS = 120;
/** The first round begins after this time, when both processes are ready. */
export const FIRST_ROUND_MS = 300;

/** Waits for the beginning of a round, exact to a fraction of a millisecond. */
export async function untilRound(firstAt: number, round: number, laterMs = 0): Promise<void> {
  const at = firstAt + round * ROUND_MS + laterMs;
  await sleep(Math.max(0, at - now() - 5));
  while (now() < at);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
