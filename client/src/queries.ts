// The parameters of the calls that read, and the types of listed transactions. An instant is a `Date`, or ISO 8601 text
// with a zone.

import type { Transaction, TransactionList } from './generated.ts';

export type Instant = Date | string;

export interface EndUserQuery {
  readonly end_user_id: string;
}

export interface BalanceQuery extends EndUserQuery {
  /** The balance at this instant, in the past or in the future. Default: now. */
  readonly at?: Instant;
}

export interface BalanceHistoryQuery extends EndUserQuery {
  /** The first point. Default: 24 hours, 30 days or 12 months before `to`, depending on `interval`. */
  readonly from?: Instant;
  /** The end of the history: the last point is at or before this instant. Default: now. */
  readonly to?: Instant;
  /** The time between two points. A request for more than 1000 points is refused. Default: `day`. */
  readonly interval?: 'hour' | 'day' | 'month';
}

/** The call that made a transaction, or `renew` or `lapse` if time caused it. */
export type TransactionKind = NonNullable<Transaction['kind']>;

export interface TransactionsQuery extends EndUserQuery {
  /** Only transactions at or after this instant. */
  readonly from?: Instant;
  /** Only transactions before this instant. */
  readonly to?: Instant;
  /** Whether to return all recorded details of each transaction. Default: false. */
  readonly details?: boolean;
  /** Only transactions of this kind. Default: all kinds that add or spend credits. */
  readonly kind?: TransactionKind;
  /** Only transactions whose note begins with this text. */
  readonly note?: string;
}

export interface TransactionPageQuery extends TransactionsQuery {
  /** 1 to 1000. Without `limit` and `cursor`, all transactions are returned. */
  readonly limit?: number;
  /** The `next_cursor` of the previous page. Send the same `kind` and `note` as for that page. */
  readonly cursor?: string;
}

/** A transaction as it is listed with `details: true`. */
export type DetailedTransaction = Transaction & Required<Pick<Transaction, 'kind' | 'note' | 'actor' | 'cycles'>>;

/** A transaction, with its details if the query asks for them. */
export type ListedTransaction<Query extends TransactionsQuery> = Query extends { readonly details: true }
  ? DetailedTransaction
  : Transaction;

/** `next_cursor` is present if `limit` or `cursor` was given, and null on the last page. */
export type TransactionPage<Listed extends Transaction = Transaction> = Omit<TransactionList, 'transactions'> & {
  readonly transactions: readonly Listed[];
};

/** The fields of a query string. */
export function queryOf(query: EndUserQuery): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) fields[name] = value instanceof Date ? value.toISOString() : String(value);
  }
  return fields;
}
