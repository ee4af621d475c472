// Deletes expired idempotency records, in the background and in small steps.

import type { IdempotencyRetention, LedgerStore } from '../store/ledger-store.ts';
import { IntervalJob } from './interval-job.ts';

/**
 * Maximum number of steps per tick, so that the store is free for writes most of the time, even when many records
 * expire at once.
 */
const STEPS_MAX = 10;

/** @param onTrouble called when a sweep fails, unless the previous sweep failed too */
export function idempotencySweep(
  store: LedgerStore,
  retention: IdempotencyRetention,
  onTrouble: (error: unknown) => void,
): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let step = 0; step < STEPS_MAX && !stopping.aborted; step++)
      if (!(await store.deleteExpiredRecords(retention))) return;
  }, onTrouble);
}
