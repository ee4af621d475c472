// The feed: committed postings, those of each end user in the order in which they happened, at least once, for consumers
// that keep their own position. What a consumer makes of a part of it is stored in one transaction with the position, so
// that each part counts once. No consumer is on the path of a write.

import type { EndUserKey } from '../ledger/command.ts';
import type { Posting } from '../ledger/posting.ts';
import type { Totals } from './totals.ts';

export interface FeedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}

export interface FeedConsumer {
  /** Under which its position is kept. */
  readonly name: 'totals';
  /** Pure: called again with the same postings after a failure. */
  derive(postings: Iterable<FeedPosting>): Totals;
}

export interface LedgerFeed {
  /**
   * Lets a consumer take the next part of the feed.
   *
   * @returns whether there may be more
   * @throws StoreFault, and what the consumer throws: it gets the same part again
   */
  consume(consumer: FeedConsumer): Promise<boolean>;
}
