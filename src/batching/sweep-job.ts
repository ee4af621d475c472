// A background job that deletes expired rows in small steps.

import { IntervalJob } from './interval-job.ts';

/** Limits the work per tick, so that the store is free for writes most of the time. */
const STEPS_MAX = 10;

/** @param deleteExpired deletes some expired rows; resolves to true if there can be more */
export function sweepJob(deleteExpired: () => Promise<boolean>, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let step = 0; step < STEPS_MAX && !stopping.aborted; step++) if (!(await deleteExpired())) return;
  }, onTrouble);
}
