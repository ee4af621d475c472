// The data that all reads of an end user return: its state, and the position of the next page.

import type { Instant } from '../ledger/instant.ts';
import type { EndUserState } from '../ledger/state.ts';

/** The state of an end user at an instant of the store's clock. */
export interface LoadedEndUser {
  readonly now: Instant;
  /** The stored state. The caller applies the due events that are not stored yet. */
  readonly state: EndUserState;
}

/** The position at which a page begins. Only the store that returned it can read it. */
export type PageCursor = string;
