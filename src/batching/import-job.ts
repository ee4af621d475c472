// Grants the batches that imports in other processes have queued.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ImportGranter } from '../store/tools/ledger-import.ts';
import { IntervalJob } from './interval-job.ts';

/**
 * Pause between two look-ups of the next batch while an import is running. If no import is running, the job looks once
 * a second.
 */
const NEXT_BATCH_MS = 4;
/** How long after its latest batch an import counts as running. */
const RUNNING_MS = 1_000;

/** @param onTrouble called when a round fails, unless the previous round failed too */
export function importJob(imports: ImportGranter, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let latest = -Infinity; !stopping.aborted; ) {
      if (await imports.grantNext()) latest = performance.now();
      else if (performance.now() - latest > RUNNING_MS) return;
      else await sleep(NEXT_BATCH_MS);
    }
  }, onTrouble);
}
