// Compares the totals of a database with its postings, and rebuilds the totals and the summaries.

import { endUserText } from '../../../ledger/command.ts';
import { TotalsSum } from '../../totals.ts';
import type { Part, Placement } from '../citus/placement.ts';
import { lockConsumer, postingsNamed, TRANSACTIONS } from '../journal/feed.ts';
import { summarizeSome } from '../journal/summaries.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf, totalsUpserts } from '../journal/totals-rows.ts';
import { type Connection, sql } from '../pool/connection.ts';
import { COMMIT, ROLLBACK, UNLIMITED } from '../pool/transactions.ts';
import { KEY } from '../rows/key.ts';
import { USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import { SCANNING } from './ledger-scan.ts';

/** One statement reads the postings of at most this many batches of the feed. */
const BATCHES_MAX = 100;
/** A rebuild fetches at most this many postings at a time. */
const FETCHED_ROWS = 2_000;

/** The postings that the totals and summaries do not include yet. */
export interface Waiting {
  readonly totals: TotalsSum;
  /** The `endUserText` of each end user whose summary may not include all of its postings. */
  readonly endUsers: ReadonlySet<string>;
}

/** Finds the waiting postings in the current snapshot of the connection. */
export async function waitingIn(connection: Connection, { parts }: Placement): Promise<Waiting> {
  const totals = new TotalsSum();
  const stale = await connection.rows(sql('SELECT account, end_user FROM scrip.stale_end_users'));
  const endUsers = new Set(stale.map(([account, endUser]) => `${account}/${endUser}`));
  for (const part of parts) {
    const batches = await connection.rows(sql(`SELECT ${TRANSACTIONS} FROM ${feedOf(part)}`));
    for (let from = 0; from < batches.length; from += BATCHES_MAX) {
      for (const entry of await postingsNamed(connection, batches.slice(from, from + BATCHES_MAX), part, Number)) {
        totals.add(entry);
        endUsers.add(endUserText(entry.user));
      }
    }
  }
  return { totals, endUsers };
}

/**
 * Describes each difference between the totals and the postings. Ignores postings that are still in the feed.
 *
 * @param sum the totals of all postings in the current snapshot of the connection
 */
export async function totalsFaults(connection: Connection, waiting: Waiting, sum: TotalsSum): Promise<string[]> {
  sum.subtract(waiting.totals.totals());
  const daily = await connection.rows(sql(DAILY_TOTALS));
  const expiries = await connection.rows(sql(EXPIRY_TOTALS));
  sum.subtract(totalsOf(daily, expiries));
  return sum.faults();
}

/**
 * Rebuilds the totals and the summaries, one part at a time. Servers may be running; the feed consumer of the part is
 * locked during the rebuild. Batches that commit after the snapshot stay in the feed.
 */
export async function rebuildTotals(database: LedgerDatabase): Promise<void> {
  const { pool, placement } = database;
  for (const part of placement.parts) {
    // Take the lock before the snapshot, so that the snapshot includes the consumer's latest changes. A separate
    // connection holds the lock, because the rebuild takes several transactions.
    await pool.use(async (holder) => {
      await holder.send([sql('BEGIN'), ...UNLIMITED, lockConsumer('totals', part, '')]);
      await pool.use((connection) => rebuildPart(connection, part));
      for (let isMore = true; isMore; )
        isMore = await pool.use((connection) => summarizeStep(connection, part, database));
      await holder.send([ROLLBACK]);
    });
  }
}

async function summarizeStep(
  connection: Connection,
  part: Part,
  { clock, placement }: LedgerDatabase,
): Promise<boolean> {
  await connection.send([sql('BEGIN'), ...UNLIMITED, ...placement.byKey]);
  const isMore = await summarizeSome(connection, part, { clock, from: 0 });
  await connection.send([COMMIT]);
  return isMore;
}

async function rebuildPart(connection: Connection, part: Part): Promise<void> {
  await connection.send([
    sql('BEGIN ISOLATION LEVEL REPEATABLE READ'),
    ...SCANNING,
    sql(`DELETE FROM ${feedOf(part)}`),
    sql(`DELETE FROM scrip.daily_totals WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.expiry_totals WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.end_user_counts WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.end_user_summaries s WHERE true${part.within('s')}`),
    sql(`DELETE FROM scrip.stale_end_users s WHERE true${part.within('s')}`),
    sql(`INSERT INTO scrip.stale_end_users (${KEY}, since, latest_activity)
      SELECT ${KEY}, min(created_at), max(created_at) FROM scrip.postings p WHERE true${part.within('p')} GROUP BY ${KEY}`),
  ]);
  const sum = new TotalsSum();
  const postings = `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings p WHERE true${part.within('p')}
    ORDER BY ${KEY}, transaction_id, line`;
  for await (const rows of connection.cursor('postings', postings, FETCHED_ROWS))
    for (const row of rows) sum.add(userPostingOf(row));
  await connection.send([...totalsUpserts(sum.totals(), part), COMMIT]);
}

function feedOf({ bucket }: Part): string {
  return `scrip.feed WHERE bucket = ${bucket} AND consumer = 'totals'`;
}
