// Lets two processes start work at the same instants, to find bugs that occur only if both work at once.

import { setTimeout as sleep } from 'node:timers/promises';

export const ROUNDS = 40;
/** Long enough to open a new ledger. */
const ROUND_MS = 120;
/** Long enough for both processes to get ready. */
export const FIRST_ROUND_MS = 300;

/** Busy-waits for the last 5 ms, because a timer can be late. */
export async function untilRound(firstAt: number, round: number, laterMs = 0): Promise<void> {
  const at = firstAt + round * ROUND_MS + laterMs;
  await sleep(Math.max(0, at - now() - 5));
  while (now() < at);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
