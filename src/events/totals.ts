// Counts the totals for the overview of the console in the background. Unless the process is busy, the totals include a
// new posting within a second or two.

import { PacedJob } from '../batching/paced-job.ts';
import type { TotalsKeeper } from '../store/totals.ts';

/** @param onTrouble called when a round fails, unless the previous round failed too */
export function totalsJob(totals: TotalsKeeper, onTrouble: (error: unknown) => void): PacedJob {
  return new PacedJob(() => totals.catchUp(), onTrouble);
}
