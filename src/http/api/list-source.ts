// Reads the transactions of a list from the store, and writes them as JSON.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Transaction } from '../../ledger/posting.ts';
import { dueTransactions } from '../../ledger/settle.ts';
import type { EndUserState } from '../../ledger/state.ts';
import type { LedgerStore, PageRequest } from '../../store/ledger-store.ts';
import type { LoadedEndUser, PageCursor } from '../../store/loaded-end-user.ts';
import { transactionText } from './replies.ts';

/**
 * Transactions per read. Such a read takes 0.7 ms on SQLite: short enough not to delay other requests, and long
 * enough that the overhead of each read is small in comparison.
 */
export const READ_TRANSACTIONS = 240;

/** Stored transactions, newest first. */
export interface SourcePage<Entry extends Transaction> extends LoadedEndUser {
  readonly transactions: readonly Entry[];
  /** Null on the last page. */
  readonly next: PageCursor | null;
}

export interface ListSource<Entry extends Transaction> {
  readonly readMax: number;
  /** If few transactions match the filters, a page can be shorter than the limit even though more pages follow. */
  read(page: PageRequest): Promise<SourcePage<Entry>>;
  /** Returns the transactions that are due by `now` but not stored yet, newest first. */
  due(state: EndUserState, now: Instant): Iterable<Entry>;
  text(entry: Entry): string;
}

export function plainSource(store: Pick<LedgerStore, 'transactions'>, user: EndUserKey): ListSource<Transaction> {
  return {
    readMax: READ_TRANSACTIONS,
    read: (page) => store.transactions(user, page),
    due: dueTransactions,
    text: transactionText,
  };
}
