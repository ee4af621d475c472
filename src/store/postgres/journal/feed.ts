// The feed on PostgreSQL. Each batch leaves a row that names its transactions. A consumer takes the earliest rows, reads the
// postings, and stores what it derives from them in the same transaction that deletes the rows. Batches do not commit in the
// order of their instants, but those of one end user do, since each locks its row.

import { INSTANT_MAX } from '../../../ledger/instant.ts';
import type { FeedConsumer, FeedPosting } from '../../feed.ts';
import type { Part, Placement } from '../citus/placement.ts';
import { type Connection, type Query, sql, type TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BEGIN_UNPROMISED, BY_KEY, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { type ReadInteger, USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import { totalsUpserts } from './totals-rows.ts';

/** Batches that are taken together, and those that share the last one's instant. */
const TAKEN_MAX = 64;

/** What the feed says of a batch: its transactions, some of them more than once, as two array literals. */
export const TRANSACTIONS = 'accounts, transaction_ids';

/** As in `LedgerFeed`. Of one part that has some: any, since other processes do the same. */
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
 * A part that another process works on for this consumer is left to it.
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
  const totals = consumer.derive(await postingsNamed(connection, taken, part));
  await connection.send([...totalsUpserts(totals, part), COMMIT]);
  return taken.length >= TAKEN_MAX;
}

/** Locks the row of a consumer. @param option as of `FOR UPDATE` */
export function lockConsumer(consumer: FeedConsumer['name'], { bucket }: Part, option: 'SKIP LOCKED' | ''): Query {
  const row = `SELECT 1 FROM scrip.feed_consumers WHERE bucket = ${bucket} AND consumer = $1`;
  return sql(`${row} FOR UPDATE ${option}`, [consumer]);
}

/** The earliest rows, and those that share the instant of the last one. */
function take(consumer: string, { bucket }: Part): Query {
  return sql(
    `DELETE FROM scrip.feed f WHERE f.bucket = ${bucket} AND f.consumer = $1 AND f.at <= coalesce((
       SELECT e.at FROM scrip.feed e WHERE e.bucket = ${bucket} AND e.consumer = $1 ORDER BY e.at OFFSET $2 LIMIT 1
     ), ${INSTANT_MAX}) RETURNING ${TRANSACTIONS}`,
    [consumer, TAKEN_MAX - 1],
  );
}

/**
 * Reads the postings of transactions; within a transaction of the caller. Two transactions of an account have the same id
 * only by a chance of 2^-48, and if they begin in the same millisecond.
 *
 * @param batches rows of `TRANSACTIONS`
 * @returns those of each end user in the order in which they happened
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
  // Arrays rather than rows to be joined: one walk along the index instead of a search for each takes half as long.
  const rows = await connection.rows(
    sql(
      `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings p
       WHERE account = ANY ($1::integer[]) AND transaction_id = ANY ($2::uuid[])${part.within('p')}
       ORDER BY account, transaction_id`,
      [`{${[...accounts]}}`, `{${ids}}`],
    ),
  );
  return rows.map((row) => userPostingOf(row, integer));
}

/** Of an array literal whose elements need no quotes. */
function elementsOf(literal: string | null | undefined): string {
  return (literal ?? '{}').slice(1, -1);
}
