// Deletes expired idempotency records, in the background and in small steps.

import type { IdempotencyRetention, LedgerStore } from '../store/ledger-store.ts';
import { IntervalJob } from './interval-job.ts';

/** Of one tick: when many records expire at once, writes still have the store for most of the time. */
const STEPS_MAX = 10;

/** @param onTrouble called for a round that fails if the one before did not */
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
