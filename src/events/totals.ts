// Totals as a consumer of the feed: what the console's overview is read from, a second or two behind the ledger.

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

/** @param onTrouble called for a round that fails if the one before did not */
export function totalsJob(feed: LedgerFeed, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    let isMore = true;
    while (isMore && !stopping.aborted) isMore = await feed.consume(TOTALS);
  }, onTrouble);
}
