// Types for all reads of an end user.

import type { Instant } from '../ledger/instant.ts';
import type { EndUserState } from '../ledger/state.ts';

/** An end user's state, and the time on the store's clock when the state was loaded. */
export interface LoadedEndUser {
  readonly now: Instant;
  /** The stored state. The caller applies the due events that are not stored yet. */
  readonly state: EndUserState;
}

/** The position at which a page begins. Only the store that returned a cursor can read it. */
export type PageCursor = string;
