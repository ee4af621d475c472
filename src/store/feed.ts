// The feed delivers committed postings to consumers at least once, in order for each end user. A consumer stores its
// position in the same transaction as its results, so that each posting counts exactly once. A write never waits for a
// consumer.

import type { EndUserKey } from '../ledger/command.ts';
import type { Posting } from '../ledger/posting.ts';
import type { Totals } from './totals.ts';

export interface FeedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}

export interface FeedConsumer {
  /** The name under which the position is stored. */
  readonly name: 'totals';
  /** Must be pure, since it may be called again with the same postings. */
  derive(postings: Iterable<FeedPosting>): Totals;
}

export interface LedgerFeed {
  /**
   * Passes the next part of the feed to a consumer.
   *
   * @returns whether there may be more
   * @throws StoreFault, or an error of the consumer; the next call passes the same part again
   */
  consume(consumer: FeedConsumer): Promise<boolean>;
}
