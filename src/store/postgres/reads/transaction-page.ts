// Reads pages of an end user's transactions.

import type { EndUserKey } from '../../../ledger/command.ts';
import { type ListedPosting, type PostingKind, type Transaction, transactionOf } from '../../../ledger/posting.ts';
import type { PageRequest, TransactionPage } from '../../ledger-store.ts';
import { wholeTransactions } from '../../transaction-history.ts';
import { exactInteger, prepared, type Query, type TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { keyOf, LAST_ID, OF_END_USER } from '../rows/key.ts';

/** Each query reads this many postings, plus one for each transaction of the page. */
const FURTHER_POSTINGS = 64;
/**
 * Maximum number of postings that are read for one page. If most of these postings belong to transactions that moved no
 * credits, the page can have fewer transactions than requested.
 */
const PAGE_POSTINGS_MAX = 5_000;

/**
 * Selects the latest `$7` postings, and the remaining postings of the oldest selected transaction. Scrip adds up the
 * postings itself, because a query that adds them up takes PostgreSQL 50% longer.
 */
const POSTINGS = prepared(
  'page',
  `SELECT transaction_id, kind, amount, created_at, expires_at, actor, note FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $5 AND $6
   ORDER BY transaction_id DESC FETCH FIRST ($7) ROWS WITH TIES`,
);

export function transactionsQuery(user: EndUserKey, { from, limit, within }: PageRequest): Query {
  return POSTINGS([...keyOf(user), from ?? LAST_ID, within.first, within.last, limit + FURTHER_POSTINGS]);
}

/**
 * Returns a page of transactions, without those that moved no credits.
 *
 * @param rows the result of `transactionsQuery`; if these rows do not fill the page, further rows are read
 */
export async function transactionsOf(
  pool: ConnectionPool,
  user: EndUserKey,
  request: PageRequest,
  rows: readonly TextRow[],
): Promise<Pick<TransactionPage, 'transactions' | 'next'>> {
  const { limit } = request;
  const listed: Transaction[] = [];
  let read = rows;
  for (let looked = read.length; ; looked += read.length) {
    const whole = [...wholeTransactions(read.map(postingOf), ({ transactionId }) => transactionId)].map(transactionOf);
    for (const transaction of whole) if (transaction.amount !== 0) listed.push(transaction);
    const last = read.length < limit + FURTHER_POSTINGS ? null : (whole.at(-1)?.id ?? null);
    if (listed.length > limit) {
      const transactions = listed.slice(0, limit);
      return { transactions, next: transactions.at(-1)?.id ?? null };
    }
    if (last === null || looked >= PAGE_POSTINGS_MAX) return { transactions: listed, next: last };
    // Postings never change, so this query need not use the previous query's snapshot.
    read = await pool.rows(transactionsQuery(user, { ...request, from: last }));
  }
}

function postingOf([transactionId, kind, amount, createdAt, expiresAt, actor, note = null]: TextRow): ListedPosting {
  return {
    transactionId: transactionId as string,
    kind: kind as PostingKind,
    amount: exactInteger(amount),
    createdAt: exactInteger(createdAt),
    expiresAt: exactInteger(expiresAt),
    actor: actor as string,
    note,
  };
}
