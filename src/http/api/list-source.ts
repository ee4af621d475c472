// The source of a list of transactions: reads the transactions from the store, and writes each of them as JSON.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Transaction } from '../../ledger/posting.ts';
import { dueTransactions } from '../../ledger/settle.ts';
import type { EndUserState } from '../../ledger/state.ts';
import type { LedgerStore, PageRequest } from '../../store/ledger-store.ts';
import type { LoadedEndUser, PageCursor } from '../../store/loaded-end-user.ts';
import { transactionText } from './replies.ts';

/**
 * Transactions per read. A read takes 0.7 ms on SQLite: short enough not to delay other requests, and long enough that
 * the overhead is small.
 */
export const READ_TRANSACTIONS = 240;

/** Stored transactions, newest first. */
export interface SourcePage<Entry extends Transaction> extends LoadedEndUser {
  readonly transactions: readonly Entry[];
  /** Null when there are no more. */
  readonly next: PageCursor | null;
}

export interface ListSource<Entry extends Transaction> {
  /** Maximum number of transactions in one read. */
  readonly readMax: number;
  /**
   * Reads a page. If few transactions pass the filter, the page may be shorter than the limit even though more pages
   * follow.
   */
  read(page: PageRequest): Promise<SourcePage<Entry>>;
  /** Returns the transactions that are due by `now` but not stored yet, newest first. */
  due(state: EndUserState, now: Instant): Iterable<Entry>;
  text(entry: Entry): string;
}

/** Lists the transactions that added or spent credits, without details. */
export function plainSource(store: Pick<LedgerStore, 'transactions'>, user: EndUserKey): ListSource<Transaction> {
  return {
    readMax: READ_TRANSACTIONS,
    read: (page) => store.transactions(user, page),
    due: dueTransactions,
    text: transactionText,
  };
}
