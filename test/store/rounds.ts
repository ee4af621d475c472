// Starts rounds of work in two processes at the same instants, to find faults that occur only if both work at once.

import { setTimeout as sleep } from 'node:timers/promises';

export const ROUNDS = 40;
/** Long enough to open a new ledger. */
const ROUND_MS = 120;
/** Long enough for both processes to get ready. */
export const FIRST_ROUND_MS = 300;

/** Returns less than a millisecond after the round is due. */
export async function untilRound(firstAt: number, round: number, laterMs = 0): Promise<void> {
  const at = firstAt + round * ROUND_MS + laterMs;
  await sleep(Math.max(0, at - now() - 5));
  while (now() < at);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
