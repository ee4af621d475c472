// Reads pages of an end user's history, with all details of each transaction.

import type { EndUserKey } from '../../../ledger/command.ts';
import { INSTANT_MAX } from '../../../ledger/instant.ts';
import { isNote, type Posting, termsOfText } from '../../../ledger/posting.ts';
import { idsBetween } from '../../../ledger/transaction-id.ts';
import {
  cyclesToName,
  HISTORY_POSTINGS_MAX,
  type HistoryFilter,
  type HistoryPage,
  type HistoryRequest,
  historyTransactionOf,
  wholeTransactions,
} from '../../transaction-history.ts';
import { prepared, type Query, type TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { keyOf, LAST_ID, OF_END_USER } from '../rows/key.ts';
import { POSTING_COLUMNS, postingOf } from '../rows/ledger-rows.ts';

/**
 * Selects up to `$5` transactions among the latest `$10` postings, in a single scan of the primary key. `$8` filters by
 * kind, and `$9` by the beginning of the note; if a filter is null, it matches all postings.
 */
const HISTORY = prepared(
  'history',
  `SELECT ${POSTING_COLUMNS} FROM (
     SELECT *, dense_rank() OVER (ORDER BY transaction_id DESC) AS place FROM (
       SELECT * FROM scrip.postings
       WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $6 AND $7
       ORDER BY transaction_id DESC FETCH FIRST ($10) ROWS WITH TIES
     ) AS latest WHERE ($8::text[] IS NULL OR kind = ANY ($8)) AND ($9::text IS NULL OR starts_with(note, $9))
   ) AS ranked WHERE place <= $5 ORDER BY transaction_id DESC, line`,
);

/**
 * Selects the transaction at which `HISTORY` reached its limit of postings. Selects no row if there are fewer postings
 * than this limit.
 */
const HISTORY_END = prepared(
  'history_end',
  `SELECT transaction_id FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $5 AND $6
   ORDER BY transaction_id DESC OFFSET $7 LIMIT 1`,
);

const OPENINGS = prepared(
  'openings',
  `SELECT cycle_id, terms FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id = ANY ($4::uuid[]) AND cycle_id = transaction_id AND terms IS NOT NULL`,
);

const REFUNDS = prepared(
  'refunds',
  `SELECT ${POSTING_COLUMNS} FROM scrip.postings
   WHERE ${OF_END_USER} AND kind = 'refund' AND reference = ANY ($4::uuid[]) ORDER BY transaction_id, line`,
);

const EVERYTHING = idsBetween(0, INSTANT_MAX);

export function historyQuery(user: EndUserKey, request: HistoryRequest): Query {
  const { from, limit, within: { first, last } = EVERYTHING } = request;
  const range = [from ?? LAST_ID, limit + 1, first, last] as const;
  return HISTORY([...keyOf(user), ...range, ...filterValues(request), HISTORY_POSTINGS_MAX]);
}

/** A query for the latest transaction of an end user; returns the same columns as `historyQuery`. */
export function latestQuery(user: EndUserKey): Query {
  return historyQuery(user, { from: null, limit: 0 });
}

/** @param rows the result of `historyQuery` */
export async function historyOf(
  pool: ConnectionPool,
  user: EndUserKey,
  request: HistoryRequest,
  rows: readonly TextRow[],
): Promise<Pick<HistoryPage, 'transactions' | 'next' | 'terms'>> {
  const key = keyOf(user);
  const { from, limit, within: { first, last } = EVERYTHING } = request;
  const all = transactionsIn(rows);
  const shown = all.slice(0, limit);
  const isFull = all.length > shown.length;
  const ids = shown.map(([{ transactionId }]) => transactionId);
  const [opened, refunded, end] = await pool.send([
    OPENINGS([...key, `{${cyclesToName(shown.map((postings) => historyTransactionOf(postings)))}}`]),
    REFUNDS([...key, `{${ids}}`]),
    ...(isFull ? [] : [HISTORY_END([...key, from ?? LAST_ID, first, last, HISTORY_POSTINGS_MAX - 1])]),
  ]);
  const refunds = Map.groupBy(refunded?.rows.map((row) => postingOf(row)) ?? [], ({ reference }) => reference);
  const transactions = shown.map((postings) => historyTransactionOf(postings, refunds.get(postings[0].transactionId)));
  const next = (isFull ? ids.at(-1) : end?.rows[0]?.[0]) ?? null;
  const terms = new Map(opened?.rows.map(([id, text]) => [id as string, termsOfText(text as string)]));
  return { transactions, next, terms };
}

/** The postings of each transaction, in the order in which they were written. */
export function transactionsIn(rows: readonly TextRow[]): [Posting, ...Posting[]][] {
  const postings = rows.map((row) => postingOf(row));
  return [...wholeTransactions(postings, ({ transactionId }) => transactionId)];
}

/**
 * If the prefix is not a valid note, PostgreSQL might reject the query. No note begins with such a prefix. The query
 * therefore gets an empty list of kinds instead, and matches nothing.
 */
function filterValues({ kinds, notePrefix }: HistoryFilter): [kinds: string | null, notePrefix: string | null] {
  if (notePrefix !== undefined && notePrefix !== '' && !isNote(notePrefix)) return ['{}', null];
  return [kinds === undefined ? null : `{${kinds}}`, notePrefix ?? null];
}
