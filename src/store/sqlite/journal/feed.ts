// The feed of a ledger file: the journal in the order of posting numbers. Consumers read the feed; the writer stores
// each result together with the position.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { FeedConsumer, FeedPosting } from '../../feed.ts';
import type { Totals } from '../../totals.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { uuidOfHex } from '../file/uuid.ts';
import { POSTING_COLUMN_COUNT, PostingOfRow, postingColumns, postingOf } from './posting-rows.ts';

/** The number of postings in a part. Reading a part takes about 3 ms. */
const PART_MAX = 1_024;
/**
 * The number of postings that are read at a time. If more were read at once, they would stay in memory longer and slow
 * down garbage collection.
 */
const PIECE_MAX = 128;

export const POSITION = 'SELECT posting FROM feed_positions WHERE consumer = ?';
export const SAVE_POSITION = 'REPLACE INTO feed_positions (consumer, posting) VALUES (?, ?)';

export interface FeedPart {
  readonly consumer: FeedConsumer['name'];
  /** The position of the consumer before this part. */
  readonly after: number;
  /** The position of the consumer after this part. */
  readonly through: number;
  readonly totals: Totals;
  readonly isMore: boolean;
}

/** Runs a read of the ledger and handles its errors. */
export type Attempt = <Result>(read: () => Result) => Result;

export class FeedReader {
  readonly #position: Statement;
  readonly #rows: FeedRows;
  readonly #attempt: Attempt;

  /**
   * @param attempt runs the reads; errors of consumers do not pass through it, because they are not faults of the
   * ledger
   */
  constructor(db: DatabaseSync, attempt: Attempt) {
    this.#attempt = attempt;
    this.#position = prepare(db, POSITION);
    this.#rows = new FeedRows(db, attempt);
  }

  /** The next part for a consumer, in whole transactions; null if there is nothing new. */
  next(consumer: FeedConsumer): FeedPart | null {
    const after = this.#attempt(() => Number(this.#position.get(consumer.name)?.[0] ?? 0));
    // A transaction may not fit into the part.
    for (let max = PART_MAX; ; max *= 2) {
      const read = { rows: 0, through: after };
      const totals = consumer.derive(postingsOf(this.#rows.transactions(after, max, read)));
      const isMore = read.rows === max;
      if (read.through > after) return { consumer: consumer.name, after, through: read.through, totals, isMore };
      if (!isMore) return null;
    }
  }
}

function* postingsOf(transactions: Iterable<readonly FeedRow[]>): Generator<FeedPosting> {
  for (const rows of transactions) yield* rows;
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
   * The transactions in the next `max` rows. Leaves out the last transaction if there may be more rows, since these may
   * contain more of its postings.
   *
   * @param max a multiple of `PIECE_MAX`
   * @param read gets the number of rows that were read, and the last row of the latest transaction
   */
  *transactions(
    after: number,
    max: number,
    read: { rows: number; through: number },
  ): Generator<readonly [FeedRow, ...FeedRow[]]> {
    let transaction: FeedRow[] = [];
    const finish = () => {
      read.through = transaction.at(-1)?.number ?? read.through;
      return transaction as [FeedRow, ...FeedRow[]];
    };
    for (let at = after, isMore = true; isMore && read.rows < max; ) {
      const postings = this.#attempt(() => this.#next.all(at, PIECE_MAX).map((row) => new FeedRow(row)));
      isMore = postings.length === PIECE_MAX;
      read.rows += postings.length;
      for (const each of postings) {
        at = each.number;
        if (transaction.length > 0 && transaction[0]?.transaction !== each.transaction) {
          yield finish();
          transaction = [];
        }
        transaction.push(each);
      }
    }
    if (read.rows < max && transaction.length > 0) yield finish();
  }
}

/** A row of the journal. Values that are costly to convert are converted only when a consumer reads them. */
export class FeedRow implements FeedPosting, EndUserKey {
  readonly number: number;
  readonly account: number;
  readonly transaction: unknown;
  readonly posting: Posting;
  readonly #row: Row;
  readonly #digits: string;

  constructor(row: Row) {
    this.#row = row;
    const [number, account, digits] = row.slice(POSTING_COLUMN_COUNT) as [number, number, string];
    this.number = number;
    this.account = account;
    this.transaction = row[0];
    this.posting = new PostingOfRow(row);
    this.#digits = digits;
  }

  get user(): EndUserKey {
    return this;
  }

  /** The posting with all values converted, for consumers that read them several times. */
  converted(): Posting {
    return postingOf(this.#row);
  }

  get endUser(): string {
    return uuidOfHex(this.#digits);
  }
}

/** Runs in the writer's transactions. */
export class FeedWriter {
  readonly #position: Statement;
  readonly #savePosition: Statement;
  readonly #getDaily: Statement;
  readonly #putDaily: Statement;
  readonly #getExpiry: Statement;
  readonly #putExpiry: Statement;

  constructor(db: DatabaseSync) {
    this.#position = prepare(db, POSITION);
    this.#savePosition = prepare(db, SAVE_POSITION);
    this.#getDaily = prepare(
      db,
      'SELECT credits, transactions FROM daily_totals WHERE account = ? AND day = ? AND kind = ? AND actor = ?',
    );
    this.#putDaily = prepare(db, 'REPLACE INTO daily_totals VALUES (?, ?, ?, ?, ?, ?)');
    this.#getExpiry = prepare(db, 'SELECT credits FROM expiry_totals WHERE account = ? AND hour = ?');
    this.#putExpiry = prepare(db, 'REPLACE INTO expiry_totals VALUES (?, ?, ?)');
  }

  /** @returns false if the part has already been stored, or the totals are being rebuilt */
  save({ consumer, after, through, totals }: FeedPart): boolean {
    if (Number(this.#position.get(consumer)?.[0] ?? 0) !== after) return false;
    for (const { account, day, kind, actor, credits, transactions } of totals.daily) {
      const [stored, count] = this.#getDaily.get(account, day, kind, actor) ?? ['0', 0];
      const sum = BigInt(stored as string) + credits;
      this.#putDaily.run(account, day, kind, actor, String(sum), (count as number) + transactions);
    }
    for (const { account, hour, credits } of totals.expiries) {
      const [stored] = this.#getExpiry.get(account, hour) ?? ['0'];
      this.#putExpiry.run(account, hour, String(BigInt(stored as string) + credits));
    }
    this.#savePosition.run(consumer, through);
    return true;
  }
}
