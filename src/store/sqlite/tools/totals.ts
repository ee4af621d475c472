// Compares the totals in a ledger file with its postings. `resetTotals` deletes the totals, so that a server computes
// them again.

import type { DatabaseSync } from 'node:sqlite';
import { type DailyTotal, type ExpiryTotal, TotalsSum } from '../../totals.ts';
import { prepare } from '../file/statements.ts';
import { uuidOfHex } from '../file/uuid.ts';
import { transact } from '../file/write-lock.ts';
import { FeedPosition } from '../journal/feed.ts';
import { POSTING_COLUMN_COUNT, postingColumns, postingOf } from '../journal/posting-rows.ts';
import { TOTALS } from '../journal/totals.ts';
import { SUMMED_COUNTS } from './summary-audit.ts';

/** Yields one sentence for each wrong total. Ignores postings that the totals do not include yet. */
export function* totalsFaults(db: DatabaseSync): Generator<string> {
  const position = new FeedPosition(db, TOTALS).read();
  const sum = new TotalsSum();
  const postings = prepare(
    db,
    `SELECT ${postingColumns('p')}, p.account, hex(p.end_user) FROM postings AS p
     WHERE p.posting <= ? ORDER BY p.posting`,
  );
  postings.setReadBigInts(true);
  for (const row of postings.iterate(position)) {
    const [account, digits] = row.slice(POSTING_COLUMN_COUNT) as [bigint, string];
    sum.add({ user: { account: Number(account), endUser: uuidOfHex(digits) }, posting: postingOf(row) });
  }
  const daily = db.prepare('SELECT account, day, kind, actor, credits, transactions FROM daily_totals').all();
  const expiries = db.prepare('SELECT account, hour, credits FROM expiry_totals').all();
  sum.subtract({
    daily: daily.map((total) => ({ ...total, credits: BigInt(total.credits as string) }) as DailyTotal),
    expiries: expiries.map((total) => ({ ...total, credits: BigInt(total.credits as string) }) as ExpiryTotal),
  });
  yield* sum.faults();
}

/**
 * Deletes all totals and their position in the feed, so that a server computes them again from the first posting.
 * Recounts the end users of each account immediately.
 */
export function resetTotals(db: DatabaseSync): Promise<void> {
  return transact(db, async () =>
    db.exec(`
      DELETE FROM daily_totals; DELETE FROM expiry_totals; DELETE FROM end_user_counts;
      DELETE FROM feed_positions WHERE consumer = '${TOTALS}';
      INSERT INTO end_user_counts (account, end_users, with_credits) ${SUMMED_COUNTS}`),
  );
}
