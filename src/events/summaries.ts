// Updates the summaries of end users, which the lists of the console show. A new posting is included in the summary
// within a second or two.

import { setTimeout as sleep } from 'node:timers/promises';
import { IntervalJob } from '../batching/interval-job.ts';
import type { SummaryKeeper } from '../store/end-user-summaries.ts';

/**
 * The pause after a step, as a multiple of the duration of the step. Under load, a step waits for writes and takes
 * longer, and so the pause is longer too: the lists are updated later, but writes stay fast.
 */
const PAUSE = 4;

/** @param onTrouble called when a round fails, unless the previous round failed too */
export function summariesJob(keeper: SummaryKeeper, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let isMore = true; isMore && !stopping.aborted; ) {
      const began = performance.now();
      isMore = await keeper.catchUp();
      const pause = PAUSE * (performance.now() - began);
      if (isMore) await sleep(pause, undefined, { signal: stopping }).catch(() => {});
    }
  }, onTrouble);
}
