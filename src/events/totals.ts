// The feed consumer that adds up the totals for the overview of the console. A new posting is included in the totals
// within a second or two.

import { IntervalJob } from '../batching/interval-job.ts';
import type { FeedConsumer, LedgerFeed } from '../store/feed.ts';
import { TotalsSum } from '../store/totals.ts';

export const TOTALS: FeedConsumer = {
  name: 'totals',
  derive(postings) {
    const sum = new TotalsSum();
    for (const each of postings) sum.add(each);
    return sum.totals();
  },
};

/** @param onTrouble called when a round fails, unless the previous round failed too */
export function totalsJob(feed: LedgerFeed, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    let isMore = true;
    while (isMore && !stopping.aborted) isMore = await feed.consume(TOTALS);
  }, onTrouble);
}
