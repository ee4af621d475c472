// The feed delivers committed postings to consumers at least once, in order for each end user. A consumer stores its
// position in the same database transaction as its results, so that each posting counts exactly once. A write never
// waits for a consumer.

import type { EndUserKey } from '../ledger/command.ts';
import type { Posting } from '../ledger/posting.ts';

export interface FeedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}
