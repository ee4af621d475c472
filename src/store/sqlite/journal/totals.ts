// Adds new postings of a ledger file to the totals, in SQL: reading each posting in JavaScript took many times as
// long. The audit computes the totals in JavaScript, and compares the results with the stored totals.

import type { DatabaseSync } from 'node:sqlite';
import { DAY_MS, HOUR_MS } from '../../../ledger/instant.ts';
import { isListed, POSTING_KINDS } from '../../../ledger/posting.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { FeedPosition } from './feed.ts';

export const TOTALS = 'totals';

/**
 * The maximum number of postings in a step. Such a step takes about 1 ms. With more postings, a sum of amounts might
 * exceed 64 bits.
 */
const POSTINGS_MAX = 1_024;

/** `keptBy` in SQL. The text form of the terms of a renewal begins with `recurring/` and the amount of the plan. */
const KEPT = `CASE p.kind
  WHEN 'renew' THEN p.amount - CAST(substr(p.terms, ${'recurring/'.length + 1}) AS INTEGER)
  WHEN 'refund' THEN iif(p.terms IS NULL, 0, p.amount)
  ELSE 0 END`;
const EXPIRES_AT = `iif(p.kind = 'refund' AND p.expires_at <= p.created_at, p.created_at, p.expires_at)`;
const UNLISTED = POSTING_KINDS.filter((kind) => !isListed(kind)).map((kind) => `'${kind}'`);
const NEW_POSTINGS = `p.posting > ?1 AND p.posting <= ?2 AND p.kind NOT IN (${UNLISTED})`;

type DailyRow = [account: number, day: number, kind: string, actor: string, credits: string, transactions: number];

/** Runs in the writer's transactions. */
export class TotalsWriter {
  readonly #position: FeedPosition;
  readonly #end: Statement;
  readonly #daily: Statement;
  readonly #expiries: Statement;
  readonly #getDaily: Statement;
  readonly #putDaily: Statement;
  readonly #getExpiry: Statement;
  readonly #putExpiry: Statement;

  constructor(db: DatabaseSync) {
    this.#position = new FeedPosition(db, TOTALS);
    this.#end = prepare(
      db,
      `SELECT max(posting), count(*) FROM (SELECT posting FROM postings WHERE posting > ?
         ORDER BY posting LIMIT ${POSTINGS_MAX})`,
    );
    // Count each transaction once, at its first posting: the posting whose predecessor in the journal belongs to
    // another transaction.
    this.#daily = prepare(
      db,
      `SELECT p.account, p.created_at / ${DAY_MS} AS day, p.kind, p.actor,
         CAST(sum(p.amount - ${KEPT}) AS TEXT),
         count(*) FILTER (WHERE q.transaction_id IS NOT p.transaction_id OR q.end_user IS NOT p.end_user)
       FROM postings AS p LEFT JOIN postings AS q ON q.posting = p.posting - 1
       WHERE ${NEW_POSTINGS} GROUP BY p.account, day, p.kind, p.actor`,
    );
    // The second part subtracts credits that would have expired at the instant of the posting, but do not. The instant
    // of a renewal is the end of the previous period.
    this.#expiries = prepare(
      db,
      `SELECT p.account, ${EXPIRES_AT} / ${HOUR_MS} AS hour, CAST(sum(p.amount) AS TEXT)
       FROM postings AS p WHERE ${NEW_POSTINGS} GROUP BY p.account, hour
       UNION ALL
       SELECT p.account, p.created_at / ${HOUR_MS} AS hour, CAST(-sum(${KEPT}) AS TEXT)
       FROM postings AS p WHERE ${NEW_POSTINGS} AND p.kind IN ('renew', 'refund') GROUP BY p.account, hour
       HAVING sum(${KEPT}) > 0`,
    );
    this.#getDaily = prepare(
      db,
      'SELECT credits, transactions FROM daily_totals WHERE account = ? AND day = ? AND kind = ? AND actor = ?',
    );
    this.#putDaily = prepare(db, 'REPLACE INTO daily_totals VALUES (?, ?, ?, ?, ?, ?)');
    this.#getExpiry = prepare(db, 'SELECT credits FROM expiry_totals WHERE account = ? AND hour = ?');
    this.#putExpiry = prepare(db, 'REPLACE INTO expiry_totals VALUES (?, ?, ?)');
  }

  catchUp(): { readonly isChanged: boolean; readonly isMore: boolean } {
    const after = this.#position.read();
    const [end, count] = this.#end.get(after) as [through: number | null, count: number];
    if (end === null) return { isChanged: false, isMore: false };
    this.#addDaily(after, end);
    this.#addExpiries(after, end);
    this.#position.save(end);
    return { isChanged: true, isMore: count === POSTINGS_MAX };
  }

  #addDaily(after: number, through: number): void {
    for (const row of this.#daily.all(after, through)) {
      const [account, day, kind, actor, credits, transactions] = row as DailyRow;
      const [stored, count] = this.#getDaily.get(account, day, kind, actor) ?? ['0', 0];
      const sum = BigInt(stored as string) + BigInt(credits);
      this.#putDaily.run(account, day, kind, actor, String(sum), (count as number) + transactions);
    }
  }

  #addExpiries(after: number, through: number): void {
    for (const row of this.#expiries.all(after, through)) {
      const [account, hour, credits] = row as [number, number, string];
      const [stored] = this.#getExpiry.get(account, hour) ?? ['0'];
      this.#putExpiry.run(account, hour, String(BigInt(stored as string) + BigInt(credits)));
    }
  }
}
