// Appends postings and snapshots to the journal of a ledger file.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import { type Posting, termsText } from '../../../ledger/posting.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import { isSnapshotDue, isWaypointDue, stateText } from '../../state-text.ts';
import { ManyRows } from '../file/many-rows.ts';
import { numberOf, type Parameter, prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';
import { OTHER_NAMES, PLAIN_NAMES } from './posting-rows.ts';

const OWN_COLUMNS = ['posting', 'previous', 'account', 'end_user'];

export class JournalWriter {
  /** Inserts postings in which all of the `OTHER_NAMES` columns keep their defaults. Most postings are of this kind. */
  readonly #plain: ManyRows;
  readonly #others: ManyRows;
  readonly #insertSnapshot: Statement;
  #latest: number;

  constructor(db: DatabaseSync) {
    this.#plain = insertion(db, [...OWN_COLUMNS, ...PLAIN_NAMES]);
    this.#others = insertion(db, [...OWN_COLUMNS, ...PLAIN_NAMES, ...OTHER_NAMES]);
    this.#insertSnapshot = prepare(
      db,
      'INSERT INTO snapshots (account, end_user, transaction_id, posting, state) VALUES (?, ?, ?, ?, ?)',
    );
    this.#latest = numberOf(db, 'SELECT coalesce(max(posting), 0) FROM postings');
  }

  /** The number of the latest posting in the journal; 0 if there is none. */
  get latest(): number {
    return this.#latest;
  }

  /**
   * Appends whole transactions of one end user. Other statements see the postings only after `flush`.
   *
   * @param previous the number of the latest posting of the end user so far; null if there is none
   * @param after the state after all of these postings
   * @returns the number of the last appended posting
   */
  append(
    { account, endUser }: EndUserKey,
    postings: readonly Posting[],
    previous: number | null,
    after: EndUserState,
  ): number {
    let latest = previous;
    for (const posting of postings) {
      const number = ++this.#latest;
      this.#add(number, latest, account, endUser, posting);
      latest = number;
    }
    if (isWaypointDue(postings)) {
      const { transactionId, createdAt } = postings.at(-1) as Posting;
      const state = isSnapshotDue(postings, after) ? stateText(after, createdAt) : null;
      this.#insertSnapshot.run(account, bytesOf(endUser), bytesOf(transactionId), latest, state);
    }
    return latest as number;
  }

  flush(): void {
    this.#plain.flush();
    this.#others.flush();
  }

  #add(number: number, previous: number | null, account: number, endUser: string, posting: Posting): void {
    const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor } = posting;
    const { held, note, terms, reference, holdExpiresAt } = posting;
    const isPlain = held === 0 && note === null && terms === null && reference === null && holdExpiresAt === null;
    const rows = isPlain ? this.#plain : this.#others;
    const ids = [rows.uuid(endUser), rows.uuid(transactionId), rows.uuid(cycleId)];
    const values: Parameter[] = [number, previous, account, ...ids, period, kind, amount, createdAt, expiresAt, actor];
    if (!isPlain) {
      const referenced = reference === null ? null : rows.uuid(reference);
      values.push(held, note, terms === null ? null : termsText(terms), referenced, holdExpiresAt);
    }
    rows.add(...values);
  }
}

function insertion(db: DatabaseSync, columns: readonly string[]): ManyRows {
  return new ManyRows(db, columns.length, (rows) => `INSERT OR FAIL INTO postings (${columns}) VALUES ${rows}`);
}
