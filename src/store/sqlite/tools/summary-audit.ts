// Compares the summaries of end users in a ledger file with their postings.

import type { DatabaseSync } from 'node:sqlite';
import type { Instant } from '../../../ledger/instant.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import { AUDITED_COLUMNS, isSummaryRight, REBUILD_COUNTS, summaryFault } from '../../end-user-summaries.ts';
import { rowsDiffer } from '../../tools/ledger-tools.ts';
import { numberOf, prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';
import { EVENTS } from '../journal/events.ts';
import { FeedPosition } from '../journal/feed.ts';
import type { EndUserPostings } from './end-users.ts';

/** SQL that counts the end users of each account. The result has the columns of `end_user_counts`. */
export const SUMMED_COUNTS =
  'SELECT account, count(*), count(*) FILTER (WHERE balance > 0) FROM end_user_summaries GROUP BY account';

export class SummaryAudit {
  readonly #db: DatabaseSync;
  readonly #fault: (sentence: string) => void;
  readonly #summary: Statement;
  readonly #createdAt: Statement;
  /** Postings after this position can still be missing from the summaries. */
  readonly #position: number;
  #read = 0;

  /** Use a `SummaryAudit` within one read transaction. */
  constructor(db: DatabaseSync, fault: (sentence: string) => void) {
    this.#db = db;
    this.#fault = fault;
    this.#position = new FeedPosition(db, EVENTS).read();
    this.#summary = prepare(
      db,
      `SELECT latest_posting, ${AUDITED_COLUMNS} FROM end_user_summaries WHERE account = ? AND end_user = ?`,
    );
    this.#summary.setReadBigInts(true);
    this.#createdAt = prepare(db, 'SELECT created_at FROM postings WHERE posting = ?');
    this.#createdAt.setReadBigInts(true);
  }

  /** @param state the state after the latest posting; null if the audit has found that the stored state is wrong */
  check({ user, latest }: EndUserPostings, state: EndUserState | null, now: Instant): void {
    const row = this.#summary.get(user.account, bytesOf(user.endUser));
    if (row !== undefined) this.#read += 1;
    const [latestPosting, ...columns] = row ?? [];
    const counted = Number(latestPosting ?? 0);
    if (state === null || (counted < latest && latest > this.#position)) return;
    if (counted > this.#position)
      this.#report(
        user.account,
        `the summary of end user ${user.endUser} is ahead of the stored position in the journal`,
      );
    const createdAt = Number(this.#createdAt.get(latest)?.[0]);
    if (counted !== latest || !isSummaryRight(columns, { at: createdAt, state }, now))
      this.#report(user.account, `the summary does not match the postings of end user ${user.endUser}`);
  }

  /**
   * Checks the counts of end users in each account, and reports summaries that belong to no end user. Call `end` after
   * `check` has been called for every end user.
   */
  end(): void {
    const stored = numberOf(this.#db, 'SELECT count(*) FROM end_user_summaries');
    if (stored !== this.#read)
      this.#fault(rowsDiffer('stored summaries', stored, 'summaries of end users with postings', this.#read));
    const counted = 'SELECT account, end_users, with_credits FROM end_user_counts WHERE end_users > 0';
    const accounts = `SELECT account FROM (${SUMMED_COUNTS} EXCEPT ${counted}) UNION SELECT account FROM (${counted} EXCEPT ${SUMMED_COUNTS})`;
    for (const [account] of prepare(this.#db, accounts).all())
      this.#report(Number(account), `the counts of end users do not match the summaries; ${REBUILD_COUNTS}`);
  }

  #report(account: number, what: string): void {
    this.#fault(summaryFault(account, what));
  }
}
