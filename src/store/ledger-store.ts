// The port through which a server writes and reads end users and their transactions. The rules are in `src/ledger`, not
// in the stores. All writes of credits except imports reach `write` through group commit.

import type { Command, EndUserKey, Outcome } from '../ledger/command.ts';
import type { Referenced } from '../ledger/decide-refund.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';
import type { IdRange, TransactionId } from '../ledger/transaction-id.ts';
import type { LoadedEndUser, PageCursor } from './loaded-end-user.ts';
import type { TotalsKeeper } from './totals.ts';
import type { HistoryPage, HistoryRequest } from './transaction-history.ts';

/**
 * The state contains at least the cycle that renews and, if its renewal is due, all holds. The caller computes the due
 * renewals from this state.
 */
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
  /** The range of transaction ids that are listed; it must be the same for all pages of a list. */
  readonly within: IdRange;
}

export interface StatesAt {
  readonly now: Instant;
  /**
   * For each instant before `now`, the state after the last transaction at or before that instant; for `now` and later,
   * the stored state. The caller computes the renewals, expiries and lapses that follow.
   */
  readonly states: readonly EndUserState[];
}

/** A lane is a sequence of batches. All writes of an end user go through the same lane of a process. */
export interface Lanes {
  readonly count: number;
  /** The maximum number of lanes that have batches in flight at the same time. */
  readonly atOnce: number;
  /** The index, from 0, of the lane for all commands of this end user. */
  of(user: EndUserKey): number;
}

/** The minimum time for which idempotency records are kept. */
export interface IdempotencyRetention {
  /**
   * For grants (`add` and `start-cycle`). This time is long, because payment providers retry their webhooks for days.
   */
  readonly grantsMs: number;
  /** For all other writes. */
  readonly othersMs: number;
}

export interface LedgerStore {
  readonly lanes: Lanes;
  readonly totals: TotalsKeeper;
  /**
   * Decides the outcomes of the commands in order, and stores their effects in one database transaction. Resolves with
   * one outcome for each command as soon as that transaction is on stable storage. An outcome is null if the batch has
   * no room for all due events of its end users; the caller must send the command again.
   *
   * @param commands of end users in the same lane
   * @param onDecided called as soon as the store can take the next batch of the lane, possibly before this batch is on
   * stable storage. The next batch sees the effects of this batch, unless this batch fails.
   * @throws StoreFault, which applies to all commands
   */
  write(commands: readonly Command[], onDecided: () => void): Promise<readonly (Outcome | null)[]>;
  /**
   * If an event is due but not stored, the caller shows it as if it were stored. After that, no write may be ordered
   * before the event. The read therefore waits for writes in flight that could come before it, as do all other reads
   * that return a state.
   *
   * @throws StoreFault, like the reads below
   */
  load(user: EndUserKey): Promise<LoadedEndUser>;
  transactions(user: EndUserKey, page: PageRequest): Promise<TransactionPage>;
  /**
   * A page of transactions with all details. Includes transactions that moved no credits, unlike `transactions`.
   *
   * @throws InvalidCursor (rejects)
   */
  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage>;
  /** @param instants ascending, at most `POINTS_MAX` */
  statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt>;
  /** A transaction of the end user, of any kind; null if there is none with this id. */
  find(user: EndUserKey, id: TransactionId): Promise<Referenced | null>;
  /** Up to `limit` end users with due events, longest overdue first. Others can be overdue for longer. */
  due(limit: number): Promise<readonly EndUserKey[]>;
  /**
   * Deletes a limited number of expired idempotency records.
   *
   * @returns whether there might be more expired records
   */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean>;
  /**
   * How long background jobs should pause between two lookups for work while this process writes nothing. 0 if a lookup
   * costs almost nothing.
   */
  readonly quietPauseMs: number;
  /** Why writes are expected to fail; null if they are expected to work. */
  trouble(): string | null;
  /** The names of the parts of the ledger that cannot be reached. The store still serves all other parts. */
  unreachable(): readonly string[];
  /** Closes the store, after the writes in flight have finished. */
  close(): Promise<void>;
}
