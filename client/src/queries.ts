// The parameters of the read calls, and the types of listed transactions. An instant is a `Date`, or an ISO 8601 string
// with a time zone.

import type { Event, Transaction, TransactionList } from './generated.ts';

export type Instant = Date | string;

export interface EndUserQuery {
  readonly end_user_id: string;
}

export interface BalanceQuery extends EndUserQuery {
  /** The instant of the balance, in the past or in the future. Default: now. */
  readonly at?: Instant | undefined;
}

export interface BalanceHistoryQuery extends EndUserQuery {
  /** The first point. Default: 24 hours, 30 days or 12 months before `to`, depending on `interval`. */
  readonly from?: Instant | undefined;
  /** The end of the history: the last point is at or before this instant. Default: now. */
  readonly to?: Instant | undefined;
  /** The time from one point to the next. Scrip refuses requests for more than 1000 points. Default: `day`. */
  readonly interval?: 'hour' | 'day' | 'month' | undefined;
}

/** The cause of a transaction: a call such as `add`, or an automatic event such as `renew`. */
export type TransactionKind = NonNullable<Transaction['kind']>;

export interface TransactionsQuery extends EndUserQuery {
  /** Lists only transactions at or after this instant. */
  readonly from?: Instant | undefined;
  /** Lists only transactions before this instant. */
  readonly to?: Instant | undefined;
  /** Whether to return all recorded details of each transaction. Default: false. */
  readonly details?: boolean | undefined;
  /** Lists only transactions of this kind. Default: all kinds that add or spend credits. */
  readonly kind?: TransactionKind | undefined;
  /** Lists only transactions whose note begins with this text. */
  readonly note?: string | undefined;
}

export interface TransactionPageQuery extends TransactionsQuery {
  /** Transactions per page: 1 to 1000. Without `limit` and `cursor`, the response contains all transactions. */
  readonly limit?: number | undefined;
  /** The `next_cursor` of the previous page. Use the same `kind` and `note` for all pages of a list. */
  readonly cursor?: string | undefined;
}

/** A transaction in the response to a query with `details: true`. */
export type DetailedTransaction = Transaction & Required<Pick<Transaction, 'kind' | 'note' | 'actor' | 'cycles'>>;

/** A listed transaction, with details if the query has `details: true`. */
export type ListedTransaction<Query extends TransactionsQuery> = Query extends { readonly details: true }
  ? DetailedTransaction
  : Transaction;

/** `next_cursor` is present if the query has `limit` or `cursor`. On the last page, it is null. */
export type TransactionPage<Listed extends Transaction = Transaction> = Omit<TransactionList, 'transactions'> & {
  readonly transactions: readonly Listed[];
};

export type EventType = Event['type'];

export interface EventsQuery {
  /** The `next_cursor` of an earlier response. Default: the list begins with the oldest event that Scrip stores. */
  readonly after?: string | null | undefined;
  /** Lists only events of these types. Default: all types. */
  readonly types?: readonly EventType[] | undefined;
}

export interface EventPageQuery extends EventsQuery {
  /** Events per response: 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** Converts a query to the fields of a query string. The elements of an array are joined with commas. */
export function queryOf(query: object): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null)
      fields[name] = value instanceof Date ? value.toISOString() : String(value);
  }
  return fields;
}
