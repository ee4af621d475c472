// Updates the summaries of end users, from which the console reads its lists. A summary includes a posting after a
// second or two.

import { setTimeout as sleep } from 'node:timers/promises';
import { IntervalJob } from '../batching/interval-job.ts';
import type { SummaryKeeper } from '../store/end-user-summaries.ts';

/**
 * The pause after a step, as a multiple of the duration of the step. A step that waits for writes takes longer, and so
 * does the pause after it: under load, the lists are updated later, and writes stay fast.
 */
const PAUSE = 4;

/** @param onTrouble called when a round fails and the round before it did not */
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
