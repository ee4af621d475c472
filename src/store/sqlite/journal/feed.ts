// The feed of a ledger file: the journal in the order of posting numbers. Consumers read the feed. The writer stores
// each result of a consumer together with the consumer's new position.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { uuidOfHex } from '../file/uuid.ts';
import { POSTING_COLUMN_COUNT, postingColumns, postingOf } from './posting-rows.ts';

/**
 * The number of postings that are read at a time. With a larger number, postings would stay in memory longer and slow
 * down garbage collection.
 */
const PIECE_MAX = 64;

/** Runs a read of the ledger and handles its errors. */
export type Attempt = <Result>(read: () => Result) => Result;

/** The number of the last posting that a consumer has processed. */
export class FeedPosition {
  readonly #consumer: string;
  readonly #read: Statement;
  readonly #save: Statement;

  constructor(db: DatabaseSync, consumer: string) {
    this.#consumer = consumer;
    this.#read = prepare(db, 'SELECT posting FROM feed_positions WHERE consumer = ?');
    this.#save = prepare(db, 'REPLACE INTO feed_positions (consumer, posting) VALUES (?, ?)');
  }

  read(): number {
    return Number(this.#read.get(this.#consumer)?.[0] ?? 0);
  }

  save(posting: number): void {
    this.#save.run(this.#consumer, posting);
  }
}

/** Reads the rows of the journal after a position. */
export class FeedRows {
  readonly #next: Statement;
  readonly #attempt: Attempt;

  constructor(db: DatabaseSync, attempt: Attempt) {
    this.#attempt = attempt;
    this.#next = prepare(
      db,
      `SELECT ${postingColumns('p')}, p.posting, p.account, hex(p.end_user) FROM postings AS p
       WHERE p.posting > ? ORDER BY p.posting LIMIT ?`,
    );
  }

  /**
   * Yields the transactions in the next `max` rows. If the journal might have more rows, the last transaction is
   * omitted, because later rows could contain more of its postings.
   *
   * @param max a multiple of `PIECE_MAX`
   * @param read this function adds the number of rows that were read
   */
  *transactions(after: number, max: number, read: { rows: number }): Generator<FeedTransaction> {
    let current: FeedTransaction | null = null;
    for (let at = after, isMore = true; isMore && read.rows < max; ) {
      const rows = this.#attempt(() => this.#next.all(at, PIECE_MAX).map((row) => [row, postingOf(row)] as const));
      isMore = rows.length === PIECE_MAX;
      read.rows += rows.length;
      for (const [row, posting] of rows) {
        const [number, account, digits] = row.slice(POSTING_COLUMN_COUNT) as [number, number, string];
        at = number;
        if (current !== null && current.postings[0].transactionId === posting.transactionId) {
          current.postings.push(posting);
          current.through = number;
          continue;
        }
        if (current !== null) yield current;
        current = { user: { account, endUser: uuidOfHex(digits) }, postings: [posting], through: number };
      }
    }
    if (read.rows < max && current !== null) yield current;
  }
}

interface FeedTransaction {
  readonly user: EndUserKey;
  readonly postings: [Posting, ...Posting[]];
  /** The number of the last posting. */
  through: number;
}
