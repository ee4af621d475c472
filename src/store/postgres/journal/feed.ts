// The feed on PostgreSQL. Each batch inserts a row that lists its transactions. A consumer takes the earliest rows and
// reads their postings. One transaction deletes the rows, stores what the consumer derives from the postings, and marks
// the summaries of the end users as stale. Batches may commit in a different order than that of their instants, but the
// batches of one end user commit in order, since each of them locks the row of the end user.

import { INSTANT_MAX } from '../../../ledger/instant.ts';
import type { FeedConsumer, FeedPosting } from '../../feed.ts';
import type { Part, Placement } from '../citus/placement.ts';
import { type Connection, type Query, sql, type TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BEGIN_UNPROMISED, BY_KEY, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { type ReadInteger, USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import { markStale } from './summaries.ts';
import { totalsUpserts } from './totals-rows.ts';

/** Number of batches that are consumed together. Further batches with the same instant as the last one are included. */
const TAKEN_MAX = 64;

/** The columns that list the transactions of a batch, in two arrays. A transaction may be listed more than once. */
export const TRANSACTIONS = 'accounts, transaction_ids';

/**
 * Implements `LedgerFeed`. Takes batches from a random part that has batches, so that several processes usually choose
 * different parts.
 */
export async function consume(pool: ConnectionPool, { parts }: Placement, consumer: FeedConsumer): Promise<boolean> {
  const rows = await pool.rows(sql('SELECT DISTINCT bucket FROM scrip.feed WHERE consumer = $1', [consumer.name]));
  const buckets = new Set(rows.map(([bucket]) => Number(bucket)));
  const waiting = parts.filter(({ bucket }) => buckets.has(bucket));
  const part = waiting[Math.floor(Math.random() * waiting.length)];
  if (part === undefined) return false;
  const isMore = await pool.use((connection) => consumeSome(connection, consumer, part));
  return isMore || waiting.length > 1;
}

/**
 * Consumes some batches of a part. Does nothing if another process is working on this part for the same consumer.
 *
 * @returns whether there may be more
 */
async function consumeSome(connection: Connection, consumer: FeedConsumer, part: Part): Promise<boolean> {
  const lock = lockConsumer(consumer.name, part, 'SKIP LOCKED');
  const locked = await connection.send([...BEGIN_UNPROMISED, ...setLocal(BY_KEY), lock]);
  if (locked.at(-1)?.rows.length === 0) {
    await connection.send([ROLLBACK]);
    return false;
  }
  const taken = await connection.rows(take(consumer.name, part));
  const postings = await postingsNamed(connection, taken, part);
  const totals = consumer.derive(postings);
  await connection.send([...totalsUpserts(totals, part), ...markStale(postings, part), COMMIT]);
  return taken.length >= TAKEN_MAX;
}

/** Locks the row of a consumer. @param option an option of `FOR UPDATE` */
export function lockConsumer(consumer: FeedConsumer['name'], { bucket }: Part, option: 'SKIP LOCKED' | ''): Query {
  const row = `SELECT 1 FROM scrip.feed_consumers WHERE bucket = ${bucket} AND consumer = $1`;
  return sql(`${row} FOR UPDATE ${option}`, [consumer]);
}

/** Deletes and returns the earliest rows, including all rows with the same instant as the last of them. */
function take(consumer: string, { bucket }: Part): Query {
  return sql(
    `DELETE FROM scrip.feed f WHERE f.bucket = ${bucket} AND f.consumer = $1 AND f.at <= coalesce((
       SELECT e.at FROM scrip.feed e WHERE e.bucket = ${bucket} AND e.consumer = $1 ORDER BY e.at OFFSET $2 LIMIT 1
     ), ${INSTANT_MAX}) RETURNING ${TRANSACTIONS}`,
    [consumer, TAKEN_MAX - 1],
  );
}

/**
 * Reads the postings of transactions, within the caller's transaction. The look-up uses the account and the id: two
 * transactions of an account have the same id only if they begin in the same millisecond, and then with a probability
 * of 2^-48.
 *
 * @param batches rows of `TRANSACTIONS`
 * @returns the postings; the postings of each end user are in the order in which they happened
 */
export async function postingsNamed(
  connection: Connection,
  batches: readonly TextRow[],
  part: Part,
  integer?: ReadInteger,
): Promise<readonly FeedPosting[]> {
  if (batches.length === 0) return [];
  const accounts = new Set(batches.flatMap(([literal]) => elementsOf(literal).split(',')));
  const ids = batches.map(([, literal]) => elementsOf(literal)).join(',');
  // Pass arrays instead of using a join: one scan of the index takes half as long as a search for each transaction.
  const rows = await connection.rows(
    sql(
      `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings p
       WHERE account = ANY ($1::integer[]) AND transaction_id = ANY ($2::uuid[])${part.within('p')}
       ORDER BY account, transaction_id, line`,
      [`{${[...accounts]}}`, `{${ids}}`],
    ),
  );
  return rows.map((row) => userPostingOf(row, integer));
}

/** Returns the elements of an array literal that contains no quotes, separated by commas. */
function elementsOf(literal: string | null | undefined): string {
  return (literal ?? '{}').slice(1, -1);
}
