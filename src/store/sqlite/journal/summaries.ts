// Stores the summaries of end users in a ledger file, in parts. Stores each part together with a position in the
// journal: the summaries include all postings up to this position.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { CountChanges, type Summary } from '../../end-user-summaries.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { FeedPosition } from './feed.ts';

export const END_USERS = 'end-users';

export interface NewSummary extends EndUserKey, Summary {
  readonly latestActivity: Instant;
  /** The latest posting that the summary includes. */
  readonly latestPosting: number;
}

export interface SummaryPart {
  readonly after: number;
  readonly through: number;
  readonly summaries: readonly NewSummary[];
}

/** Runs in the writer's transactions. */
export class SummaryWriter {
  readonly #position: FeedPosition;
  readonly #stored: Statement;
  readonly #insert: Statement;
  readonly #change: Statement;
  readonly #changeWithExpiry: Statement;
  readonly #count: Statement;
  readonly #endUser = new UuidParameter();

  constructor(db: DatabaseSync) {
    this.#position = new FeedPosition(db, END_USERS);
    const own = 'WHERE account = ? AND end_user = ?';
    this.#stored = prepare(db, `SELECT balance, expires_at FROM end_user_summaries ${own}`);
    this.#insert = prepare(
      db,
      `INSERT INTO end_user_summaries (balance, expires_at, latest_activity, latest_posting, account, end_user)
       VALUES (?, ?, ?, ?, ?, ?)`,
    );
    // Setting a column rewrites the indexes of this column, even if the value stays the same.
    const change = 'UPDATE end_user_summaries SET latest_activity = ?, latest_posting = ?, balance = ?';
    this.#change = prepare(db, `${change} ${own}`);
    this.#changeWithExpiry = prepare(db, `${change}, expires_at = ? ${own}`);
    this.#count = prepare(
      db,
      `INSERT INTO end_user_counts (account, end_users, with_credits) VALUES (?, ?, ?) ON CONFLICT (account)
       DO UPDATE SET end_users = end_users + excluded.end_users, with_credits = with_credits + excluded.with_credits`,
    );
  }

  /** @returns false if the part has already been stored, or the summaries are being rebuilt */
  save({ after, through, summaries }: SummaryPart): boolean {
    if (this.#position.read() !== after) return false;
    const counts = new CountChanges();
    for (const summary of summaries) counts.add(summary.account, this.#store(summary), summary.balance);
    for (const { account, endUsers, withCredits } of counts.all()) this.#count.run(account, endUsers, withCredits);
    if (through > after) this.#position.save(through);
    return true;
  }

  /** @returns the previous balance; null for a new end user */
  #store({ account, endUser, balance, expiresAt, latestActivity, latestPosting }: NewSummary): number | null {
    const key = [account, this.#endUser.of(endUser)] as const;
    const stored = this.#stored.get(...key) as [balance: number, expiresAt: number | null] | undefined;
    const columns = [latestActivity, latestPosting, balance] as const;
    if (stored === undefined) this.#insert.run(balance, expiresAt, latestActivity, latestPosting, ...key);
    else if (stored[1] === expiresAt) this.#change.run(...columns, ...key);
    else this.#changeWithExpiry.run(...columns, expiresAt, ...key);
    return stored?.[0] ?? null;
  }
}
