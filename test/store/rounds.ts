// Two processes start rounds of work at the same instants, to find faults that occur only if both do the same thing at
// once.

import { setTimeout as sleep } from 'node:timers/promises';

export const ROUNDS = 40;
/** The time from the start of one round to the start of the next: long enough to open a new ledger. */
const ROUND_MS = 120;
/** The delay before the first round: long enough for both processes to get ready. */
export const FIRST_ROUND_MS = 300;

/** Waits for the start of a round, plus `laterMs`, with an error of less than a millisecond. */
export async function untilRound(firstAt: number, round: number, laterMs = 0): Promise<void> {
  const at = firstAt + round * ROUND_MS + laterMs;
  await sleep(Math.max(0, at - now() - 5));
  while (now() < at);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
