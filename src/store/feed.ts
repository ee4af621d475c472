// The feed delivers each committed posting to each consumer at least once. The postings of an end user arrive in order.
// A consumer stores its progress in the same database transaction as its results, so that each posting counts exactly
// once. A write never waits for a consumer.

import type { EndUserKey } from '../ledger/command.ts';
import type { Posting } from '../ledger/posting.ts';

export interface FeedPosting {
  readonly user: EndUserKey;
  readonly posting: Posting;
}
