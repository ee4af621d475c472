// The feed on PostgreSQL. For each consumer, each batch inserts a row that lists the batch's transactions. A consumer
// takes its earliest rows and reads the postings of the listed transactions. A single database transaction deletes the
// rows and stores the consumer's results. Batches of the same end user commit in the order of `at` and `ids_through`,
// because each batch locks the end user's row. Batches of different end users can commit in any order.

import type { FeedPosting } from '../../feed.ts';
import { totalsOfPostings } from '../../totals.ts';
import { type Part, type Placement, partsIn } from '../citus/placement.ts';
import type { Reach, Reachable } from '../citus/reach.ts';
import { type Connection, type Query, sql, type TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BEGIN_UNPROMISED, COMMIT, IDLE_TIMEOUT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { type ReadInteger, USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import { totalsUpserts } from './totals.ts';

/**
 * A step adds batches to the totals until it reaches one of these limits. On a busy machine, PostgreSQL needs a second
 * for 50,000 postings, and a statement can take at most `ANSWER_TIMEOUT_MS`.
 */
const TOTALS_LIMITS: TakeLimits = { batchesMax: 64, postingsMax: 50_000 };

/** `totals` computes totals; `events` derives events and summaries. */
export const CONSUMERS = ['totals', 'events'] as const;

export type Consumer = (typeof CONSUMERS)[number];

/** The columns that list the transactions of a batch, as two arrays; a transaction can be listed more than once. */
export const TRANSACTIONS = 'accounts, transaction_ids';

interface FeedDatabase {
  readonly pool: ConnectionPool;
  readonly placement: Placement;
  readonly reach: Reach;
}

/** Adds the next batches of each part to the totals. @returns the result of `ofParts` */
export async function countSome({ pool, placement, reach }: FeedDatabase): Promise<boolean | null> {
  const rows = await reach.lookUp((reachable) => pool.rows(partsInFeed('totals', reachable)));
  return ofParts(partsIn(rows, placement), (part) => pool.use((connection) => countPart(connection, part, placement)));
}

/**
 * Runs a step for each part, one after the other.
 *
 * @param step returns whether there might be more work; null if another process is doing the work
 * @returns true if a step returned true; otherwise null if a step returned null; otherwise false
 */
export async function ofParts(
  parts: Iterable<Part>,
  step: (part: Part) => Promise<boolean | null>,
): Promise<boolean | null> {
  const results: (boolean | null)[] = [];
  for (const part of parts) results.push(await step(part));
  if (results.includes(true)) return true;
  return results.includes(null) ? null : false;
}

/**
 * Adds the next batches of one part of the ledger to the totals.
 *
 * @returns whether there might be more batches; null if another process is updating the totals of this part
 */
async function countPart(connection: Connection, part: Part, { byKey }: Placement): Promise<boolean | null> {
  const lock = lockConsumer('totals', part, 'SKIP LOCKED');
  const locked = await connection.send([...BEGIN_UNPROMISED, ...setLocal(IDLE_TIMEOUT), ...byKey, lock]);
  if (locked.at(-1)?.rows.length === 0) {
    await connection.send([ROLLBACK]);
    return null;
  }
  const taken = await connection.rows(take('totals', part, TOTALS_LIMITS));
  const postings = await postingsNamed(connection, taken, part);
  await connection.send([...totalsUpserts(totalsOfPostings(postings), part), COMMIT]);
  return isFull(taken, TOTALS_LIMITS);
}

/** The buckets of the parts that have batches for a consumer. Takes no longer if there are many batches. */
export function partsInFeed(consumer: Consumer, reachable: Reachable): Query {
  return sql(
    `SELECT c.bucket FROM scrip.feed_consumers c WHERE c.consumer = $1${reachable('c')}
       AND EXISTS (
         SELECT 1 FROM scrip.feed f WHERE f.bucket = c.bucket AND f.consumer = c.consumer${reachable('f')}
       )`,
    [consumer],
  );
}

/** Locks the row of a consumer, and returns its `latest_event`. @param option an option of `FOR UPDATE` */
export function lockConsumer(consumer: Consumer, { bucket }: Part, option: 'SKIP LOCKED' | ''): Query {
  const row = `SELECT latest_event FROM scrip.feed_consumers WHERE bucket = ${bucket} AND consumer = $1`;
  return sql(`${row} FOR UPDATE ${option}`, [consumer]);
}

/**
 * Deletes and returns the earliest rows, up to the row that reaches one of the limits. Also includes all rows with the
 * same `at` and `ids_through` as that row. Each returned row contains the columns `TRANSACTIONS`, the instant, and the
 * number of postings.
 */
export function take(consumer: Consumer, { bucket }: Part, { batchesMax, postingsMax }: TakeLimits): Query {
  return sql(
    `DELETE FROM scrip.feed f WHERE f.bucket = ${bucket} AND f.consumer = $1 AND (f.at, f.ids_through) <= (
       SELECT t.at, t.ids_through FROM (
         SELECT e.at, e.ids_through, row_number() OVER earlier AS batches,
           sum(cardinality(e.transaction_ids)) OVER earlier >= $3 AS is_full
         FROM (
           SELECT at, ids_through, batch, transaction_ids FROM scrip.feed o
           WHERE o.bucket = ${bucket} AND o.consumer = $1 ORDER BY at, ids_through, batch LIMIT $2
         ) AS e WINDOW earlier AS (ORDER BY e.at, e.ids_through, e.batch ROWS UNBOUNDED PRECEDING)
       ) AS t ORDER BY t.is_full DESC, CASE WHEN t.is_full THEN t.batches ELSE -t.batches END LIMIT 1
     ) RETURNING ${TRANSACTIONS}, at, cardinality(transaction_ids)`,
    [consumer, batchesMax, postingsMax],
  );
}

/** Whether `take` has reached one of its limits, so that more batches might be left. */
export function isFull(taken: readonly TextRow[], { batchesMax, postingsMax }: TakeLimits): boolean {
  const postings = taken.reduce((sum, [, , , count]) => sum + Number(count), 0);
  return taken.length >= batchesMax || postings >= postingsMax;
}

export interface TakeLimits {
  readonly batchesMax: number;
  readonly postingsMax: number;
}

/**
 * Reads the postings of transactions, within the caller's database transaction. Finds a transaction by its account and
 * its ID, without the end user. Two transactions of an account can have the same ID only if they have the same instant.
 * Even then, the probability is only 2^-48.
 *
 * @param batches rows of `TRANSACTIONS`
 * @returns the postings; those of each end user are sorted oldest first
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
  // This query scans the index only once, and takes half as long as a join, which looks up each transaction separately.
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

/** Returns the comma-separated elements of an array literal. The literal must not contain quotes. */
function elementsOf(literal: string | null | undefined): string {
  return (literal ?? '{}').slice(1, -1);
}
