// The totals of a ledger file, compared with the postings that they count, and rebuilt from them.

import type { DatabaseSync } from 'node:sqlite';
import { type DailyTotal, type ExpiryTotal, TotalsSum } from '../../totals.ts';
import { prepare } from '../file/statements.ts';
import { uuidOfHex } from '../file/uuid.ts';
import { transact } from '../file/write-lock.ts';
import { STRETCH_POSTINGS } from '../journal/feed.ts';
import { POSTING_COLUMN_COUNT, postingColumns, postingOf } from '../journal/posting-rows.ts';

/** Where the totals are not what the postings say, up to the position of their consumer. */
export function* totalsFaults(db: DatabaseSync): Generator<string> {
  const position = Number(prepare(db, `SELECT posting FROM feed_positions WHERE consumer = 'totals'`).get()?.[0] ?? 0);
  const sum = new TotalsSum();
  const postings = prepare(
    db,
    `SELECT ${postingColumns('p')}, p.account, hex(p.end_user) FROM postings AS p
     WHERE p.posting <= ? ORDER BY p.posting`,
  );
  postings.setReadBigInts(true);
  for (const each of postings.iterate(position)) {
    const row = each;
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
  for (const fault of activityFaults(db, position)) yield `${fault}; \`scrip migrate --totals\` rebuilds them`;
}

/** Compares the stretches that hold postings of an account with those that are stored. */
function* activityFaults(db: DatabaseSync, position: number): Generator<string> {
  const present = `SELECT account, posting / ${STRETCH_POSTINGS} FROM postings WHERE posting <= ?`;
  const stored = 'SELECT account, stretch FROM account_activity';
  for (const [account, stretch] of prepare(db, `${present} EXCEPT ${stored}`).all(position))
    yield `the recent activity of account ${account} lacks stretch ${stretch} of the journal`;
  for (const [account, stretch] of prepare(db, `${stored} EXCEPT ${present}`).all(position))
    yield `the recent activity of account ${account} has stretch ${stretch} of the journal without a posting in it`;
}

/** The consumer then begins again with the first posting. */
export function resetTotals(db: DatabaseSync): void {
  transact(db, () =>
    db.exec(`
      DELETE FROM daily_totals; DELETE FROM expiry_totals; DELETE FROM account_activity;
      DELETE FROM feed_positions WHERE consumer = 'totals'`),
  );
}
