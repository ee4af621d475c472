// Pages of the transactions of an end user, added up from their postings by the database.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { PostingKind, Transaction } from '../../../ledger/posting.ts';
import type { PageRequest, TransactionPage } from '../../ledger-store.ts';
import { exactInteger, prepared, type Query, type TextRow } from '../pool/connection.ts';
import { keyOf, LAST_ID, OF_END_USER } from '../rows/key.ts';

/**
 * Maximum number of postings that are read for one page: some 20 ms of the server if most belong to unlisted
 * transactions.
 */
const PAGE_POSTINGS_MAX = 20_000;

/**
 * Up to `$7` transactions among the latest `$8` postings. Transactions that moved no credits are left out: stops,
 * holds, releases, lapses, and refunds of credits that have all expired. The transaction of the last posting is always
 * included if the limit `$8` is reached: the next page begins after it.
 */
const PAGE = prepared(
  'page',
  `SELECT transaction_id, min(kind), sum(moved), min(created_at), max(expires_at) FILTER (WHERE amount <> 0), min(actor),
     min(note), max(place) >= $8
   FROM (
     SELECT *, CASE WHEN kind = 'refund' AND expires_at <= created_at THEN 0 ELSE amount END AS moved,
       row_number() OVER (ORDER BY transaction_id DESC) AS place
     FROM scrip.postings WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $5 AND $6
     ORDER BY transaction_id DESC FETCH FIRST ($8) ROWS WITH TIES
   ) AS latest
   GROUP BY transaction_id HAVING sum(moved) <> 0 OR max(place) >= $8
   ORDER BY transaction_id DESC LIMIT $7`,
);

const IS_LAST = 7;

export function transactionsQuery(user: EndUserKey, { from, limit, within }: PageRequest): Query {
  return PAGE([...keyOf(user), from ?? LAST_ID, within.first, within.last, limit + 1, PAGE_POSTINGS_MAX]);
}

/** @param rows the result of `transactionsQuery` */
export function transactionsOf(
  rows: readonly TextRow[],
  { limit }: PageRequest,
): Pick<TransactionPage, 'transactions' | 'next'> {
  const listed = rows.filter(([, , amount]) => amount !== '0').map(transactionOf);
  const transactions = listed.slice(0, limit);
  if (listed.length > limit) return { transactions, next: transactions.at(-1)?.id ?? null };
  const last = rows.at(-1);
  return { transactions, next: last?.[IS_LAST] === 't' ? (last[0] ?? null) : null };
}

function transactionOf([id, kind, amount, createdAt, expiresAt, actor, note = null]: TextRow): Transaction {
  return {
    id: id as string,
    kind: kind as PostingKind,
    amount: exactInteger(amount),
    createdAt: exactInteger(createdAt),
    expiresAt: exactInteger(expiresAt),
    actor: actor as string,
    note,
  };
}
