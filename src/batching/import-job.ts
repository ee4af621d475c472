// `scrip import` runs in another process and queues its rows. This job imports the queued rows, one batch at a time.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ImportGranter } from '../store/tools/ledger-import.ts';
import { IntervalJob } from './interval-job.ts';

/** While an import is running but has no batch ready, the job checks for the next batch at this interval. */
const NEXT_BATCH_MS = 4;
/** An import counts as running for this long after its latest batch. */
const RUNNING_MS = 1_000;

export function importJob(imports: ImportGranter, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let latest = -Infinity; !stopping.aborted; ) {
      if (await imports.grantNext()) latest = performance.now();
      else if (performance.now() - latest > RUNNING_MS) return;
      else await sleep(NEXT_BATCH_MS);
    }
  }, onTrouble);
}
