// Reads pages of an end user's history, with all details of each transaction.

import type { EndUserKey } from '../../../ledger/command.ts';
import { type CycleTerms, isOpening, type Posting } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { InvalidCursor } from '../../store-fault.ts';
import {
  cyclesToName,
  HISTORY_POSTINGS_MAX,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  passes,
  wholeTransactions,
} from '../../transaction-history.ts';
import type { NumberedPosting, PostingReader } from '../journal/posting-reader.ts';
import type { SnapshotReader } from '../journal/snapshots.ts';
import type { TransactionReader } from '../journal/transaction-reader.ts';

const POSTING_NUMBER = /^[1-9]\d{0,14}$/;

export class HistoryPages {
  readonly #postings: PostingReader;
  readonly #snapshots: SnapshotReader;
  readonly #transactions: TransactionReader;

  constructor(postings: PostingReader, snapshots: SnapshotReader, transactions: TransactionReader) {
    this.#postings = postings;
    this.#snapshots = snapshots;
    this.#transactions = transactions;
  }

  /**
   * @param latest the latest posting that the caller can see
   * @throws InvalidCursor
   */
  page(
    user: EndUserKey,
    latest: number | null,
    request: HistoryRequest,
  ): Pick<HistoryPage, 'transactions' | 'next' | 'terms'> {
    const page = this.#pageFrom(this.#start(user, latest, request), user, request);
    return { ...page, terms: this.#termsOf(user, latest, page.transactions) };
  }

  #pageFrom(
    start: number | null,
    user: EndUserKey,
    { limit, within, ...filter }: HistoryRequest,
  ): Pick<HistoryPage, 'transactions' | 'next'> {
    const transactions: HistoryTransaction[] = [];
    let read = 0;
    const postings = this.#postings.backwards(start, user);
    for (const entries of wholeTransactions(postings, ({ posting }) => posting.transactionId)) {
      const [{ number, posting }] = entries;
      if (within !== undefined && posting.transactionId < within.first) break;
      if (transactions.length === limit || read >= HISTORY_POSTINGS_MAX) return { transactions, next: String(number) };
      read += entries.length;
      if (within !== undefined && posting.transactionId > within.last) continue;
      if (passes(posting, filter)) transactions.push(this.#transactionOf(user, oldestFirst(entries)));
    }
    return { transactions, next: null };
  }

  #transactionOf(user: EndUserKey, postings: [Posting, ...Posting[]]): HistoryTransaction {
    const [{ kind, transactionId }] = postings;
    const canBeRefunded = kind === 'subtract' || kind === 'capture';
    return historyTransactionOf(postings, canBeRefunded ? this.#transactions.refundsOf(user, transactionId) : []);
  }

  /** Returns the terms with which each cycle was opened. A cycle has the same ID as the transaction that opened it. */
  #termsOf(
    user: EndUserKey,
    latest: number | null,
    transactions: readonly HistoryTransaction[],
  ): ReadonlyMap<TransactionId, CycleTerms> {
    const terms = new Map<TransactionId, CycleTerms>();
    for (const id of cyclesToName(transactions)) {
      const opening = this.#transactions.postingsOf(user, latest, id).find(isOpening);
      if (opening?.terms) terms.set(id, opening.terms);
    }
    return terms;
  }

  #start(user: EndUserKey, latest: number | null, { from, within }: HistoryRequest): number | null {
    if (from !== null) return this.#startAt(from, user);
    return within === undefined ? latest : this.#snapshots.postingOf(user, latest, within.last);
  }

  /** A valid cursor is the number of the last posting of a transaction of this end user. */
  #startAt(cursor: string, user: EndUserKey): number {
    const number = POSTING_NUMBER.test(cursor) ? Number(cursor) : 0;
    const [here] = this.#postings.backwards(number, user);
    const [later] = this.#postings.backwards(number + 1, user);
    if (here === undefined || later?.posting.transactionId === here.posting.transactionId) throw new InvalidCursor();
    return number;
  }
}

/** The postings of a transaction in the order in which they were written. */
export function oldestFirst(entries: readonly [NumberedPosting, ...NumberedPosting[]]): [Posting, ...Posting[]] {
  return entries.map(({ posting }) => posting).reverse() as [Posting, ...Posting[]];
}
