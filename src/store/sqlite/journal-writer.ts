// Enters postings in the journal of a ledger file, one behind the other, with the landmarks on their way.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Posting } from '../../ledger/posting.ts';
import { insertLandmark, isLandmark } from './landmarks.ts';
import { type Holdings, POSTING_COLUMNS, prepare } from './rows.ts';
import { UuidParameter } from './uuid.ts';

/** The end of an end user's chain, and how long it is. */
export type ChainEnd = Pick<Holdings, 'latestPosting' | 'postingCount'>;

interface Entered extends ChainEnd {
  readonly latestPosting: number;
}

export class JournalWriter {
  readonly #insertPosting: StatementSync;
  readonly #insertLandmark: StatementSync;
  readonly #endUser = new UuidParameter();
  readonly #transaction = new UuidParameter();
  readonly #cycle = new UuidParameter();
  #lastPosting: number;

  constructor(db: DatabaseSync) {
    this.#insertPosting = prepare(
      db,
      `INSERT INTO postings (posting, previous, account, end_user, ${POSTING_COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertLandmark = insertLandmark(db);
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
  }

  /** The number of the latest posting of all end users; 0 when there is none. */
  get lastPosting(): number {
    return this.#lastPosting;
  }

  /**
   * @param end of the end user's chain before
   * @returns its end with this posting
   */
  enter({ account, endUser }: EndUserKey, posting: Posting, end: ChainEnd): Entered {
    const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
    const number = ++this.#lastPosting;
    const user = this.#endUser.of(endUser);
    const transaction = this.#transaction.of(transactionId);
    this.#insertPosting.run(
      number,
      end.latestPosting,
      account,
      user,
      transaction,
      this.#cycle.of(cycleId),
      period,
      kind,
      amount,
      createdAt,
      expiresAt,
      actor,
      note,
    );
    const postingCount = end.postingCount + 1;
    if (isLandmark(postingCount)) this.#insertLandmark.run(account, user, transaction, number);
    return { latestPosting: number, postingCount };
  }
}
