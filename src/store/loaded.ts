// What reads of an end user have in common: the cycles at an instant, and the place where a page goes on.

import type { Cycle } from '../ledger/cycle.ts';
import type { Instant } from '../ledger/instant.ts';

/** The cycles of an end user that have not ended, and the one that renews, in burn order, at the store's own instant. */
export interface Loaded {
  readonly now: Instant;
  readonly cycles: readonly Cycle[];
}

/** Where a page goes on; only the store that gave it out can read it. */
export type PageCursor = string;
