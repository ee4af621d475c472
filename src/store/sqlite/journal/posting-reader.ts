// Reads the postings of an end user backwards: each posting refers to the previous posting of the same end user.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { POSTING_COLUMN_COUNT, postingColumns, postingOf } from './posting-rows.ts';

export interface NumberedPosting {
  readonly number: number;
  readonly posting: Posting;
}

const COLUMNS = `${postingColumns('p')}, p.previous, p.account = ?2 AND p.end_user = ?3`;
const PREVIOUS = POSTING_COLUMN_COUNT;
const IS_OWN = PREVIOUS + 1;

/** Reads postings one by one: a statement that reads several takes no less time for each. */
export class PostingReader {
  readonly #select: Statement;
  readonly #endUser = new UuidParameter();

  /** @param options.anyInteger whether to accept and round integers above 2^53−1, as the audit does */
  constructor(db: DatabaseSync, { anyInteger = false } = {}) {
    this.#select = prepare(db, `SELECT ${COLUMNS} FROM postings AS p WHERE p.posting = ?1`);
    this.#select.setReadBigInts(anyInteger);
  }

  /** Yields the latest posting first. Ends early at a broken link, which the audit reports. */
  *backwards(start: number | null, { account, endUser }: EndUserKey): Generator<NumberedPosting> {
    for (let number = start; number !== null; ) {
      const row = this.#select.get(number, account, this.#endUser.of(endUser));
      if (row === undefined || !row[IS_OWN]) return;
      yield { number, posting: postingOf(row) };
      const previous = row[PREVIOUS] === null ? null : Number(row[PREVIOUS]);
      if (previous !== null && previous >= number) return;
      number = previous;
    }
  }

  /** Returns the postings after posting `after` (0 for all), oldest first. Suitable for a few hundred postings. */
  after(after: number, latest: number, user: EndUserKey): NumberedPosting[];
  /** Returns null if there are more than `max` postings. */
  after(after: number, latest: number, user: EndUserKey, max: number): NumberedPosting[] | null;
  after(after: number, latest: number, user: EndUserKey, max = Number.POSITIVE_INFINITY): NumberedPosting[] | null {
    const found: NumberedPosting[] = [];
    for (const each of this.backwards(latest, user)) {
      if (each.number <= after) break;
      if (found.length >= max) return null;
      found.push(each);
    }
    return found.reverse();
  }
}
