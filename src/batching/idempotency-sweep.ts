// Forgets the answers to idempotency keys that are past their time, in the background and in small steps.

import type { Store } from '../store/store.ts';
import { IntervalJob } from './interval-job.ts';

/** Taken at one tick, so that where many expire at once, writers have the store to themselves for most of the time. */
const STEPS_MAX = 10;

/**
 * @param keptMs how long an answer is kept, at least
 * @param onTrouble told of a round that fails when the one before did not
 */
export function idempotencySweep(store: Store, keptMs: number, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async () => {
    for (let step = 0; step < STEPS_MAX; step++) if ((await store.deleteExpiredRecords(keptMs)) === 0) return;
  }, onTrouble);
}
