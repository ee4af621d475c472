// Compares the totals of a database with its postings, and rebuilds the totals and the counts of end users.

import { endUserText } from '../../../ledger/command.ts';
import type { FeedPosting } from '../../feed.ts';
import { TotalsSum } from '../../totals.ts';
import type { Part, Placement } from '../citus/placement.ts';
import { countUpserts } from '../journal/events.ts';
import { CONSUMERS, type Consumer, lockConsumer, postingsNamed, TRANSACTIONS } from '../journal/feed.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf, totalsUpserts } from '../journal/totals.ts';
import { type Connection, sql } from '../pool/connection.ts';
import { BEGIN, COMMIT, ROLLBACK, UNLIMITED } from '../pool/transactions.ts';
import { KEY } from '../rows/key.ts';
import { USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import { SCANNING } from './ledger-scan.ts';

/** One statement reads the postings of at most this many batches in the feed. */
const BATCHES_MAX = 100;
/** A rebuild fetches at most this many postings at a time. */
const FETCHED_ROWS = 2_000;

/** The postings that the totals or summaries do not include yet. */
export interface Waiting {
  readonly totals: TotalsSum;
  /** The `endUserText` of each end user whose summary does not include all of its postings. */
  readonly endUsers: ReadonlySet<string>;
}

/** Reads the feed in the connection's current snapshot. */
export async function waitingIn(connection: Connection, { parts }: Placement): Promise<Waiting> {
  const totals = new TotalsSum();
  const endUsers = new Set<string>();
  for (const part of parts) {
    for await (const entry of waitingFor('totals', connection, part)) totals.add(entry);
    for await (const { user } of waitingFor('events', connection, part)) endUsers.add(endUserText(user));
  }
  return { totals, endUsers };
}

async function* waitingFor(consumer: Consumer, connection: Connection, part: Part): AsyncGenerator<FeedPosting> {
  const batches = await connection.rows(sql(`SELECT ${TRANSACTIONS} FROM ${feedOf(consumer, part)}`));
  for (let from = 0; from < batches.length; from += BATCHES_MAX)
    yield* await postingsNamed(connection, batches.slice(from, from + BATCHES_MAX), part, Number);
}

/**
 * Describes each difference between the totals and the postings. Ignores postings that are still in the feed.
 *
 * @param sum the totals of all postings in the connection's current snapshot
 */
export async function totalsFaults(connection: Connection, waiting: Waiting, sum: TotalsSum): Promise<string[]> {
  sum.subtract(waiting.totals.totals());
  const daily = await connection.rows(sql(DAILY_TOTALS));
  const expiries = await connection.rows(sql(EXPIRY_TOTALS));
  sum.subtract(totalsOf(daily, expiries));
  return sum.faults();
}

/**
 * Rebuilds the totals and the counts of end users, one part (see `Part`) at a time. Servers can keep running: only the
 * feed consumers of the part are locked. The rebuild reads one snapshot of the part. Batches that commit after the
 * snapshot stay in the feed.
 */
export async function rebuildTotals({ pool, placement }: LedgerDatabase): Promise<void> {
  for (const part of placement.parts) {
    // Take the locks before the snapshot, so that the snapshot includes the consumers' latest changes. A transaction
    // takes its snapshot at its first statement, before that statement gets any lock. A separate connection therefore
    // takes the locks.
    await pool.use(async (holder) => {
      await holder.send([BEGIN, ...UNLIMITED, ...CONSUMERS.map((consumer) => lockConsumer(consumer, part, ''))]);
      await pool.use((connection) => rebuildPart(connection, part));
      await holder.send([ROLLBACK]);
    });
  }
}

async function rebuildPart(connection: Connection, part: Part): Promise<void> {
  await connection.send([
    sql('BEGIN ISOLATION LEVEL REPEATABLE READ'),
    ...SCANNING,
    sql(`DELETE FROM ${feedOf('totals', part)}`),
    sql(`DELETE FROM scrip.daily_totals WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.expiry_totals WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.end_user_counts WHERE bucket = ${part.bucket}`),
  ]);
  const sum = new TotalsSum();
  const postings = `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings p WHERE true${part.within('p')}
    ORDER BY ${KEY}, transaction_id, line`;
  for await (const rows of connection.cursor('postings', postings, FETCHED_ROWS))
    for (const row of rows) sum.add(userPostingOf(row));
  const counted = await connection.rows(
    sql(
      `SELECT account, count(*), count(*) FILTER (WHERE balance > 0) FROM scrip.end_user_summaries s
       WHERE true${part.within('s')} GROUP BY account`,
    ),
  );
  const counts = counted.map(([account, endUsers, withCredits]) => ({
    account: Number(account),
    endUsers: Number(endUsers),
    withCredits: Number(withCredits),
  }));
  await connection.send([...totalsUpserts(sum.totals(), part), ...countUpserts(counts, part), COMMIT]);
}

function feedOf(consumer: Consumer, { bucket }: Part): string {
  return `scrip.feed WHERE bucket = ${bucket} AND consumer = '${consumer}'`;
}
