// Landmarks on the chain of an end user's postings: each 256th of them stands in a table of its own, with its
// transaction, so that a place far back is found in one step and at most 256 more.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { prepare, type Row } from './rows.ts';
import { bytesOf, uuidOf } from './uuid.ts';

/**
 * How many postings from one landmark to the next. Walking this far takes about 0.1 ms; a landmark dirties a page of its
 * own, which at this distance is not to be seen in the time of a write.
 */
const STRIDE = 256;

/** @param place of a posting in its chain, from 1 for the first */
export function isLandmark(place: number): boolean {
  return place % STRIDE === 0;
}

/** Inserts landmarks: account, end user, transaction id, posting. */
export function insertLandmark(db: DatabaseSync): StatementSync {
  return prepare(db, 'INSERT INTO landmarks (account, end_user, transaction_id, posting) VALUES (?, ?, ?, ?)');
}

/** Finds places in chains. Ids ascend along a chain, since the times of an end user never go backwards. */
export class PlaceFinder {
  readonly #landmark: StatementSync;
  readonly #walk: StatementSync;

  constructor(db: DatabaseSync) {
    this.#landmark = prepare(
      db,
      `SELECT posting FROM landmarks WHERE account = ? AND end_user = ? AND transaction_id >= ?
       ORDER BY transaction_id, posting LIMIT 1`,
    );
    // In SQL, since a row that is only passed by costs less there. A chain leads backwards, or the walk ends.
    this.#walk = prepare(
      db,
      `WITH RECURSIVE chain (posting, previous, transaction_id) AS (
         SELECT posting, previous, transaction_id FROM postings WHERE posting = ?1
         UNION ALL
         SELECT p.posting, p.previous, p.transaction_id FROM chain JOIN postings AS p ON p.posting = chain.previous
         WHERE chain.transaction_id > ?2 AND p.posting < chain.posting
       )
       SELECT posting FROM chain WHERE transaction_id <= ?2 LIMIT 1`,
    );
  }

  /**
   * @param latest the latest posting of the end user as the caller sees it: what was written since is passed over
   * @returns the latest posting of the transaction `last`, or else of the one before it; null when there is none
   */
  find({ account, endUser }: EndUserKey, latest: number | null, last: TransactionId): number | null {
    if (latest === null) return null;
    const bytes = bytesOf(last);
    const landmark = this.#landmark.get(account, bytesOf(endUser), bytes) as unknown as Row | undefined;
    const start = landmark === undefined ? latest : Math.min(latest, Number(landmark[0]));
    const found = this.#walk.get(start, bytes) as unknown as Row | undefined;
    return found === undefined ? null : Number(found[0]);
  }
}

/** Compares the landmarks of an end user with its chain, as the audit follows that, latest first. */
export class LandmarkAudit {
  readonly #ofUser: StatementSync;
  readonly #count: StatementSync;
  /** Those that belong to an end user. */
  #known = 0;

  constructor(db: DatabaseSync) {
    this.#ofUser = prepare(
      db,
      `SELECT posting, transaction_id FROM landmarks WHERE account = ? AND end_user = ?
       ORDER BY transaction_id DESC, posting DESC`,
    );
    this.#ofUser.setReadBigInts(true);
    this.#count = prepare(db, 'SELECT count(*) FROM landmarks');
  }

  /** @param count how many postings the end user says to have; null when it does not say */
  *of<Each extends { number: number; posting: { transactionId: TransactionId } }>(
    { account, endUser }: EndUserKey,
    count: number | null,
    chain: Iterable<Each>,
    report: (fault: string) => void,
  ): Generator<Each> {
    const landmarks = this.#ofUser.iterate(account, bytesOf(endUser)) as unknown as Iterator<Row>;
    const next = () => {
      const { done, value } = landmarks.next();
      if (!done) this.#known += 1;
      return done ? null : `${value[0]}/${uuidOf(value[1] as Uint8Array)}`;
    };
    let place = count ?? 0;
    let isRight = true;
    for (const each of chain) {
      if (place > 0 && isLandmark(place)) isRight &&= next() === `${each.number}/${each.posting.transactionId}`;
      place -= 1;
      yield each;
    }
    while (next() !== null) isRight = false;
    const who = `account ${account}, end user ${endUser}`;
    if (place !== 0) report(`${who} counts ${count} postings, and has ${(count ?? 0) - place}`);
    else if (!isRight) report(`the landmarks of ${who} are not its postings`);
  }

  /** What is wrong with the table as a whole, after all end users. */
  *rest(): Generator<string> {
    const stored = Number((this.#count.get() as unknown as Row)[0]);
    if (stored !== this.#known) yield `${stored} landmarks are stored, and ${this.#known} belong to an end user`;
  }
}
