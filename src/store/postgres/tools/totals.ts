// The totals of a database, compared with the postings that they count, and rebuilt from them.

import { TotalsSum } from '../../totals.ts';
import type { Part, Placement } from '../citus/placement.ts';
import { lockConsumer, postingsNamed, TRANSACTIONS } from '../journal/feed.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf, totalsUpserts } from '../journal/totals-rows.ts';
import { type Connection, sql } from '../pool/connection.ts';
import { COMMIT, ROLLBACK, UNLIMITED } from '../pool/transactions.ts';
import { KEY } from '../rows/key.ts';
import { USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import { SCANNING } from './ledger-scan.ts';

/** Batches of the feed, and postings, that are read together. */
const BATCHES_MAX = 100;
const FETCHED_ROWS = 2_000;

/**
 * Where the totals are not what the postings say, but for those that no consumer has taken yet.
 *
 * @param sum of all postings in the snapshot that the connection is in
 */
export async function totalsFaults(connection: Connection, { parts }: Placement, sum: TotalsSum): Promise<string[]> {
  for (const part of parts) {
    const waiting = await connection.rows(sql(`SELECT ${TRANSACTIONS} FROM ${feedOf(part)}`));
    for (let from = 0; from < waiting.length; from += BATCHES_MAX) {
      const uncounted = new TotalsSum();
      const batches = waiting.slice(from, from + BATCHES_MAX);
      for (const entry of await postingsNamed(connection, batches, part, Number)) uncounted.add(entry);
      sum.subtract(uncounted.totals());
    }
  }
  const daily = await connection.rows(sql(DAILY_TOTALS));
  const expiries = await connection.rows(sql(EXPIRY_TOTALS));
  sum.subtract(totalsOf(daily, expiries));
  return sum.faults();
}

/**
 * Rebuilds the totals, a part at a time, beside servers that may be running. Consumers are held off meanwhile; what commits
 * behind the snapshot is left in the feed for them.
 */
export async function rebuildTotals({ pool, placement }: LedgerDatabase): Promise<void> {
  for (const part of placement.parts) {
    // The lock comes before the snapshot, on a connection of its own.
    await pool.use(async (holder) => {
      await holder.send([sql('BEGIN'), ...UNLIMITED, lockConsumer('totals', part, '')]);
      await pool.use((connection) => rebuildPart(connection, part));
      await holder.send([ROLLBACK]);
    });
  }
}

async function rebuildPart(connection: Connection, part: Part): Promise<void> {
  await connection.send([
    sql('BEGIN ISOLATION LEVEL REPEATABLE READ'),
    ...SCANNING,
    sql(`DELETE FROM ${feedOf(part)}`),
    sql(`DELETE FROM scrip.daily_totals WHERE bucket = ${part.bucket}`),
    sql(`DELETE FROM scrip.expiry_totals WHERE bucket = ${part.bucket}`),
  ]);
  const sum = new TotalsSum();
  const postings = `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings p WHERE true${part.within('p')}
    ORDER BY ${KEY}, transaction_id`;
  for await (const rows of connection.cursor('postings', postings, FETCHED_ROWS))
    for (const row of rows) sum.add(userPostingOf(row));
  await connection.send([...totalsUpserts(sum.totals(), part), COMMIT]);
}

function feedOf({ bucket }: Part): string {
  return `scrip.feed WHERE bucket = ${bucket} AND consumer = 'totals'`;
}
