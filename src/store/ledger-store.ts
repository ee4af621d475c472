// The port for serving: write, load, list, and the feed of committed postings. A store loads, locks, writes and
// commits; all rules are in the ledger. All writes of credits go through group commit to `write`.

import type { Command, EndUserKey, Outcome } from '../ledger/command.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';
import type { IdRange } from '../ledger/transaction-id.ts';
import type { LedgerFeed } from './feed.ts';

/** The state of an end user at an instant of the store's clock. */
export interface LoadedEndUser {
  readonly now: Instant;
  /** As stored. The caller settles what is due but not stored yet. */
  readonly state: EndUserState;
}

/** The position at which a page begins. Only the store that returned it can read it. */
export type PageCursor = string;

/** The state includes at least the renewing cycle, from which the due renewals follow. */
export interface TransactionPage extends LoadedEndUser {
  /** The stored transactions, latest first. The caller adds the renewals that are due but not stored yet. */
  readonly transactions: readonly Transaction[];
  /** Null if there is no next page. */
  readonly next: PageCursor | null;
}

export interface PageRequest {
  /** Null for the first page. */
  readonly from: PageCursor | null;
  readonly limit: number;
  /** The same range for all pages of a list. */
  readonly within: IdRange;
}

/** The lanes of a store. All commands of a batch belong to one lane. */
export interface Lanes {
  readonly count: number;
  /** How many batches the store takes at the same time, each from a different lane. */
  readonly atOnce: number;
  /** The lane of all commands of this end user, from 0. */
  of(user: EndUserKey): number;
}

/** The least time for which idempotency records are kept. */
export interface IdempotencyRetention {
  /** For grants (`add` and `start-cycle`). Payment providers retry their webhooks for days. */
  readonly grantsMs: number;
  /** For all other writes. */
  readonly othersMs: number;
}

export interface LedgerStore {
  readonly lanes: Lanes;
  readonly feed: LedgerFeed;
  /**
   * Decides the commands in order, and stores their effects in one transaction. Resolves once it is on stable storage,
   * with an outcome for each command: null if more renewals are due than fit the batch, and the command must be sent
   * again.
   *
   * @param onDecided called once the store can take the next batch of the lane, which may be before this one is on
   * stable storage: the next batch then sees the effects of this one, or fails with it and is retried
   * @throws StoreFault, which applies to all of the commands
   */
  write(commands: readonly Command[], onDecided: () => void): Promise<readonly (Outcome | null)[]>;
  /**
   * Once a read has shown a due renewal, no later write precedes that renewal: a write that is being committed is
   * ordered after it, or the read waits for the write. This applies to all reads of one end user.
   *
   * @throws StoreFault, like the reads below
   */
  load(user: EndUserKey): Promise<LoadedEndUser>;
  transactions(user: EndUserKey, page: PageRequest): Promise<TransactionPage>;
  /** Some of the end users with due renewals, the longest overdue first. */
  due(limit: number): Promise<readonly EndUserKey[]>;
  /**
   * Deletes some of the idempotency records that are older than their retention, in a short step.
   *
   * @returns whether there may be more
   */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean>;
  /** Why writes are expected to fail; null if they are expected to work. */
  trouble(): string | null;
  /** Waits for the writes in flight. */
  close(): Promise<void>;
}
