// The port that serving needs: write, load, list, and the feed of what was committed. An adapter loads, locks, writes and
// commits; every rule comes from the ledger. All writes of credits go through `write`, and all through group commit.

import type { Command, EndUserKey, Outcome } from '../ledger/command.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';
import type { IdRange } from '../ledger/transaction-id.ts';
import type { LedgerFeed } from './feed.ts';

/** An end user at the store's own instant. */
export interface LoadedEndUser {
  readonly now: Instant;
  /** As stored: what is due and not stored yet is for the reader to settle. */
  readonly state: EndUserState;
}

/** Where a page goes on; only the store that gave it out can read it. */
export type PageCursor = string;

/** Its state has at least the cycle that renews: what is due follows from that. */
export interface TransactionPage extends LoadedEndUser {
  /** Stored ones, latest first. What is due and not stored yet is for the reader to put before them. */
  readonly transactions: readonly Transaction[];
  /** Null when there are no more. */
  readonly next: PageCursor | null;
}

export interface PageRequest {
  /** Null for the latest. */
  readonly from: PageCursor | null;
  readonly limit: number;
  /** The pages of one list all ask for the same range. */
  readonly within: IdRange;
}

/** The ways into a store for writes. A batch goes through one lane and holds commands of that lane only. */
export interface Lanes {
  readonly count: number;
  /** How many batches the store takes at the same time, each of another lane. */
  readonly atOnce: number;
  /** The lane, from 0, of everything that concerns this end user. */
  of(user: EndUserKey): number;
}

/** How long idempotency records are kept, at least. */
export interface IdempotencyRetention {
  /** Of grants: `add` and `start-cycle`. Payment providers retry their webhooks for days. */
  readonly grantsMs: number;
  /** Of all other writes. */
  readonly othersMs: number;
}

export interface LedgerStore {
  readonly lanes: Lanes;
  readonly feed: LedgerFeed;
  /**
   * Decides the commands in order, and stores what they do in one transaction. Resolves once that is on stable storage,
   * with an outcome for each command: null where more is due for the end user than fits, and the command must be sent again.
   *
   * @param onDecided called once the store can take the next batch of the lane, which may be before this one is on stable
   * storage: the next one then sees what this one does, or fails with it and is repeated
   * @throws StoreFault for all of them alike
   */
  write(commands: readonly Command[], onDecided: () => void): Promise<readonly (Outcome | null)[]>;
  /**
   * A renewal that is due at `now` stands once it is shown, here and by the other reads of one end user: a write that is
   * being committed comes behind it, or is waited for.
   *
   * @throws StoreFault, as do the reads below
   */
  load(user: EndUserKey): Promise<LoadedEndUser>;
  transactions(user: EndUserKey, page: PageRequest): Promise<TransactionPage>;
  /** Some of the end users for whom something is due, the longest overdue first. */
  due(limit: number): Promise<readonly EndUserKey[]>;
  /**
   * Deletes some of the idempotency records that are older than their retention, in a step that is short.
   *
   * @returns whether there may be more
   */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean>;
  /** Null when writes can be expected to work, else why not. */
  trouble(): string | null;
  /** Waits for what is being written. */
  close(): Promise<void>;
}
