// The interface through which a server writes and reads end users and their transactions. The rules of the ledger are
// in `src/ledger`, not in the stores. Except for imports, all writes of credits reach `write` through group commit.

import type { Command, EndUserKey, Outcome } from '../ledger/command.ts';
import type { Referenced } from '../ledger/decide-refund.ts';
import type { Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import type { EndUserState } from '../ledger/state.ts';
import type { IdRange, TransactionId } from '../ledger/transaction-id.ts';
import type { LoadedEndUser, PageCursor } from './loaded-end-user.ts';
import type { HistoryPage, HistoryRequest } from './transaction-history.ts';

/**
 * The `state` field can be incomplete. It always contains the active recurring cycle, if there is one. If a renewal of
 * this cycle is due, `state` also contains all holds. The caller computes the due renewals from `state`.
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
  /** The range of the listed transaction IDs. All pages of a list must use the same range. */
  readonly within: IdRange;
}

export interface StatesAt {
  readonly now: Instant;
  /**
   * One state for each requested instant. For an instant before `now`, this is the state after the last transaction at
   * or before that instant. For `now` and later instants, this is the stored state. The caller must still apply the
   * renewals, expiries and lapses that are due at the instant but are not in the state.
   */
  readonly states: readonly EndUserState[];
}

/** A lane is a sequence of batches. In each process, all writes of an end user go through the same lane. */
export interface Lanes {
  readonly count: number;
  /** The maximum number of lanes that have batches in flight at the same time. */
  readonly atOnce: number;
  /** Returns the index, from 0 to `count - 1`, of the lane for all commands of this end user. */
  of(user: EndUserKey): number;
}

/** The minimum time for which idempotency records are kept. */
export interface IdempotencyRetention {
  /**
   * For grants (`add` and `start-cycle`). This time is long, because grants are often triggered by a payment provider's
   * webhook, and payment providers retry webhooks for days.
   */
  readonly grantsMs: number;
  /** For all other writes. */
  readonly othersMs: number;
}

export interface LedgerStore {
  readonly lanes: Lanes;
  /**
   * Decides the outcomes of the commands in order, and stores their effects in one database transaction. Resolves with
   * one outcome for each command as soon as that transaction is on stable storage. If the end users of the batch have
   * too many due events, or the commands of an account produce too many postings, some outcomes are null. The caller
   * must resend each command whose outcome is null.
   *
   * @param commands of end users in the same lane
   * @param onDecided called as soon as the store can take the next batch of the lane, possibly before this batch is on
   * stable storage. The next batch sees the effects of this batch, unless this batch fails.
   * @throws StoreFault; the fault applies to all commands of the batch
   */
  write(commands: readonly Command[], onDecided: () => void): Promise<readonly (Outcome | null)[]>;
  /**
   * Loads an end user. If an event is due but not stored, the caller shows it as if it were stored. From then on, no
   * write may be ordered before the event. `load` and all other reads that return a state therefore first wait for the
   * writes in flight that could be ordered before the event.
   *
   * @throws StoreFault, like the reads below
   */
  load(user: EndUserKey): Promise<LoadedEndUser>;
  transactions(user: EndUserKey, page: PageRequest): Promise<TransactionPage>;
  /**
   * A page of transactions with all details. Unlike `transactions`, this method also returns transactions that moved no
   * credits.
   *
   * @throws InvalidCursor (rejects)
   */
  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage>;
  /** @param instants ascending, at most `POINTS_MAX` */
  statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt>;
  /** The end user's transaction with this ID, of any kind; null if there is none. */
  find(user: EndUserKey, id: TransactionId): Promise<Referenced | null>;
  /**
   * Returns up to `limit` end users with due events, longest overdue first. If more than `limit` end users have due
   * events, the result can omit end users that have been overdue for longer than others in the result.
   */
  due(limit: number): Promise<readonly EndUserKey[]>;
  /**
   * Adds the next postings of the feed to the totals.
   *
   * @returns whether the feed might contain more postings; null if another process is adding them
   */
  updateTotals(): Promise<boolean | null>;
  /**
   * Deletes a limited number of expired idempotency records.
   *
   * @returns whether there might be more expired records
   */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean>;
  /**
   * While this process writes nothing, background jobs should wait this long before they look for work again. The value
   * is 0 if looking for work costs almost nothing.
   */
  readonly quietPauseMs: number;
  /** Why writes are expected to fail; null if they are expected to work. */
  trouble(): string | null;
  /** The names of the parts of the ledger that cannot be reached. The store still serves all other parts. */
  unreachable(): readonly string[];
  /** Closes the store, after the writes in flight have finished. */
  close(): Promise<void>;
}

/** Whether any end user of the ledger has due events that are not stored yet. */
export async function isDueUnstored(store: Pick<LedgerStore, 'due'>): Promise<boolean> {
  return (await store.due(1)).length > 0;
}
