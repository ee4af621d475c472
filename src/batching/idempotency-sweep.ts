// Deletes expired idempotency records, in the background and in small steps.

import type { IdempotencyRetention, LedgerStore } from '../store/ledger-store.ts';
import { IntervalJob } from './interval-job.ts';

/** Limits the work per tick, so that the store stays free for writes. */
const STEPS_MAX = 10;

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
