// Pages of an end user's transactions, with all details, for the API and the console.

import type { Amount } from '../ledger/amount.ts';
import { type Referenced, refundableOf } from '../ledger/decide-refund.ts';
import type { Plan } from '../ledger/plan.ts';
import { type CycleTerms, type Posting, type PostingKind, type Transaction, transactionOf } from '../ledger/posting.ts';
import type { IdRange, TransactionId } from '../ledger/transaction-id.ts';
import type { LoadedEndUser, PageCursor } from './loaded-end-user.ts';

export const PAGE_ROWS_MAX = 100;
/** The maximum number of postings that are searched for one page. */
export const HISTORY_POSTINGS_MAX = 5_000;
/**
 * For each transaction, a page shows the terms of only this many cycles. A transaction can touch thousands of cycles.
 */
export const NAMED_CYCLES_MAX = 10;
const NAMED_PER_PAGE_MAX = 200;

export interface HistoryTransaction extends Transaction {
  /** The changes to each cycle and period that the transaction touched. */
  readonly postings: readonly Pick<Posting, 'cycleId' | 'period' | 'amount' | 'held'>[];
  /**
   * What the transaction refers to: the hold that it closed, the transaction that it refunded, or, for a change of
   * plan, the transaction that scheduled the plan.
   */
  readonly reference: TransactionId | null;
  /** How many credits of a subtraction or a capture can still be refunded; null for all other kinds. */
  readonly refundable: Amount | null;
  /** The plan that a `schedule-plan` transaction scheduled; null for all other transactions. */
  readonly scheduled: Plan | null;
}

export interface HistoryFilter {
  /** The range of transaction IDs; all IDs if absent. */
  readonly within?: IdRange;
  /** The kinds of the transactions; all kinds if absent. */
  readonly kinds?: readonly PostingKind[] | undefined;
  /** Only transactions whose notes begin with this text; all transactions if absent. */
  readonly notePrefix?: string | undefined;
}

export interface HistoryRequest extends HistoryFilter {
  /** Null for the first page. A cursor comes from a client, so the store checks it. */
  readonly from: PageCursor | null;
  /** The maximum number of transactions on the page, from 1 to `PAGE_ROWS_MAX`. */
  readonly limit: number;
}

/**
 * A page does not contain due events, such as renewals, that are not stored yet. The caller computes these events from
 * `state`. On the first page, `state` therefore contains all live cycles and all holds. On each later page, `state`
 * contains at least the active recurring cycle, if there is one.
 */
export interface HistoryPage extends LoadedEndUser {
  /**
   * Latest first. If few transactions pass the filter, a page can have fewer than `limit` transactions even if there
   * is a next page.
   */
  readonly transactions: readonly HistoryTransaction[];
  readonly next: PageCursor | null;
  /** The terms with which the cycles were opened, by cycle ID. Contains all cycles that `cyclesToName` returns. */
  readonly terms: ReadonlyMap<TransactionId, CycleTerms>;
}

/** @param refunds the postings of all refunds of the transaction */
export function historyTransactionOf(
  postings: readonly [Posting, ...Posting[]],
  refunds: Referenced['refunds'] = [],
): HistoryTransaction {
  const { kind, reference, terms } = postings[0];
  const touched = postings.map(({ cycleId, period, amount, held }) => ({ cycleId, period, amount, held }));
  const isSpent = kind === 'subtract' || kind === 'capture';
  const refundable = isSpent ? refundableOf({ postings, refunds }) : null;
  const scheduled = kind === 'schedule-plan' ? (terms?.plan ?? null) : null;
  return { ...transactionOf(postings), postings: touched, reference, refundable, scheduled };
}

/** How much the transaction changed the held credits, as a sum over all cycles. */
export function heldChange({ postings }: Pick<HistoryTransaction, 'postings'>): number {
  return postings.reduce((sum, { held }) => sum + held, 0);
}

/** Whether a transaction passes the filter. Does not check `within`. */
export function passes(
  { kind, note }: Pick<Transaction, 'kind' | 'note'>,
  { kinds, notePrefix }: HistoryFilter,
): boolean {
  if (kinds !== undefined && !kinds.includes(kind)) return false;
  return notePrefix === undefined || (note?.startsWith(notePrefix) ?? false);
}

/**
 * The IDs of the cycles whose terms are shown on a page with these transactions, without duplicates: at most
 * `NAMED_CYCLES_MAX` per transaction and `NAMED_PER_PAGE_MAX` per page.
 */
export function cyclesToName(transactions: readonly HistoryTransaction[]): readonly TransactionId[] {
  const ids = transactions.flatMap(({ postings }) => postings.slice(0, NAMED_CYCLES_MAX).map(({ cycleId }) => cycleId));
  return [...new Set(ids)].slice(0, NAMED_PER_PAGE_MAX);
}

/**
 * Groups postings by transaction.
 *
 * @param postings in any order, as long as the postings of each transaction are adjacent
 * @param idOf returns the transaction ID of a posting
 */
export function* wholeTransactions<Entry>(
  postings: Iterable<Entry>,
  idOf: (entry: Entry) => string,
): Generator<[Entry, ...Entry[]]> {
  let current: [Entry, ...Entry[]] | null = null;
  for (const entry of postings) {
    if (current !== null && idOf(current[0]) === idOf(entry)) {
      current.push(entry);
      continue;
    }
    if (current !== null) yield current;
    current = [entry];
  }
  if (current !== null) yield current;
}
