// Enters postings in the journal of a ledger file, one behind the other, with the landmarks on their way.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { UserChange } from '../../ledger/fold.ts';
import { type ChainHash, emptyHashChain, extend } from '../../ledger/hash-chain.ts';
import type { Posting } from '../../ledger/posting.ts';
import { insertLandmark, isLandmark } from './landmarks.ts';
import { ManyRows } from './many-rows.ts';
import { type Holdings, POSTING_COLUMNS } from './rows.ts';

/** The end of an end user's chain, and how long it is. */
export type LatestPosting = Pick<Holdings, 'latestPosting' | 'postingCount'>;

interface Entered extends LatestPosting {
  readonly latestPosting: number;
}

export class JournalWriter {
  readonly #postings: ManyRows;
  readonly #insertLandmark: StatementSync;
  #lastPosting: number;

  constructor(db: DatabaseSync) {
    this.#postings = new ManyRows(
      db,
      13,
      (rows) => `INSERT INTO postings (posting, previous, account, end_user, ${POSTING_COLUMNS}) VALUES ${rows}`,
    );
    this.#insertLandmark = insertLandmark(db);
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
  }

  /** The number of the latest posting of all end users; 0 when there is none. */
  get lastPosting(): number {
    return this.#lastPosting;
  }

  /**
   * Enters a posting: it is there for who reads it behind the next `flush`.
   *
   * @param end of the end user's chain before
   * @returns its end with this posting
   */
  enter({ account, endUser }: EndUserKey, posting: Posting, end: LatestPosting): Entered {
    const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
    const number = ++this.#lastPosting;
    const user = this.#postings.uuid(endUser);
    const transaction = this.#postings.uuid(transactionId);
    const cycle = this.#postings.uuid(cycleId);
    const what = [transaction, cycle, period, kind, amount, createdAt, expiresAt, actor, note] as const;
    this.#postings.add(number, end.latestPosting, account, user, ...what);
    if (this.#postings.isFull) this.flush();
    const postingCount = end.postingCount + 1;
    if (isLandmark(postingCount)) this.#insertLandmark.run(account, user, transaction, number);
    return { latestPosting: number, postingCount };
  }

  /** Inserts what was entered. */
  flush(): void {
    this.#postings.flush();
  }
}

/** A chain begins with the first posting, or not at all: one that was not kept meanwhile would prove nothing. */
export function chainAfter({ latestPosting, chain }: Holdings, { user, postings }: UserChange): ChainHash | null {
  if (latestPosting !== null && chain === null) return null;
  return extend(chain ?? emptyHashChain(user), postings);
}
