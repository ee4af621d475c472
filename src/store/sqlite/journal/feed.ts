// The feed of a ledger file: the journal itself, in the order of its numbers. Consumers read it beside the writer, which
// then stores what they made of it together with their position.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { FeedConsumer, FeedPosting } from '../../feed.ts';
import type { Totals } from '../../totals.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { uuidOfHex } from '../file/uuid.ts';
import { POSTING_COLUMN_COUNT, PostingOfRow, postingColumns } from './posting-rows.ts';

/** Postings of a part: some 3 ms of reading. */
const PART_MAX = 1_024;
/** Those that are in memory at a time: more of them live longer than the garbage collector likes. */
const PIECE_MAX = 128;

/** Postings that are looked through together for those of one account. */
export const STRETCH_POSTINGS = 64;

/** The first and the last posting of a stretch. */
export function stretchRange(stretch: number): readonly [first: number, last: number] {
  const first = stretch * STRETCH_POSTINGS;
  return [first, first + STRETCH_POSTINGS - 1];
}

const POSITION = 'SELECT posting FROM feed_positions WHERE consumer = ?';

type Stretch = readonly [account: number, stretch: number];

/** What a consumer has made of the next part of the feed. */
export interface FeedPart {
  readonly consumer: FeedConsumer['name'];
  /** The position of the consumer. */
  readonly after: number;
  /** Its position behind this part. */
  readonly through: number;
  readonly totals: Totals;
  /** Which stretches of the journal hold postings of which accounts. */
  readonly activity: readonly Stretch[];
  readonly isMore: boolean;
}

type Attempt = <Result>(read: () => Result) => Result;

export class FeedReader {
  readonly #position: Statement;
  readonly #next: Statement;
  readonly #attempt: Attempt;

  /** @param attempt runs what reads the ledger: a consumer that fails is not the ledger's fault */
  constructor(db: DatabaseSync, attempt: Attempt) {
    this.#attempt = attempt;
    this.#position = prepare(db, POSITION);
    this.#next = prepare(
      db,
      `SELECT ${postingColumns('p')}, p.posting, p.account, hex(p.end_user) FROM postings AS p
       WHERE p.posting > ? ORDER BY p.posting LIMIT ?`,
    );
  }

  /** The next part for a consumer, in whole transactions; null when there is nothing new. */
  next(consumer: FeedConsumer): FeedPart | null {
    const after = this.#attempt(() => Number(this.#position.get(consumer.name)?.[0] ?? 0));
    // A transaction over more cycles than a part has postings takes a larger part.
    for (let max = PART_MAX; ; max *= 2) {
      const read = { rows: 0, through: after, activity: new Map<string, Stretch>() };
      const totals = consumer.derive(this.#wholeTransactions(after, max, read));
      const isMore = read.rows === max;
      if (read.through > after) {
        const activity = [...read.activity.values()];
        return { consumer: consumer.name, after, through: read.through, totals, activity, isMore };
      }
      if (!isMore) return null;
    }
  }

  /** Without the last transaction of a full part, which may go on behind it. */
  *#wholeTransactions(
    after: number,
    max: number,
    read: { rows: number; through: number; activity: Map<string, Stretch> },
  ): Generator<FeedPosting> {
    let transaction: FeedRow[] = [];
    const finish = () => {
      for (const { number, account } of transaction) {
        const stretch = Math.floor(number / STRETCH_POSTINGS);
        const name = `${account} ${stretch}`;
        if (!read.activity.has(name)) read.activity.set(name, [account, stretch]);
        read.through = number;
      }
      return transaction;
    };
    for (let at = after, isMore = true; isMore && read.rows < max; ) {
      const postings = this.#attempt(() => this.#next.all(at, PIECE_MAX).map((row) => new FeedRow(row)));
      isMore = postings.length === PIECE_MAX;
      read.rows += postings.length;
      for (const each of postings) {
        at = each.number;
        if (transaction.length > 0 && transaction[0]?.transaction !== each.transaction) {
          yield* finish();
          transaction = [];
        }
        transaction.push(each);
      }
    }
    if (read.rows < max) yield* finish();
  }
}

/** A row of the journal. What is costly to convert is converted when a consumer asks for it. */
class FeedRow implements FeedPosting, EndUserKey {
  readonly number: number;
  readonly account: number;
  /** Of its transaction, as digits. */
  readonly transaction: unknown;
  readonly posting: Posting;
  readonly #digits: string;

  constructor(row: Row) {
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

  get endUser(): string {
    return uuidOfHex(this.#digits);
  }
}

/** Writes within the transactions of the writer. */
export class FeedWriter {
  readonly #position: Statement;
  readonly #savePosition: Statement;
  readonly #getDaily: Statement;
  readonly #putDaily: Statement;
  readonly #getExpiry: Statement;
  readonly #putExpiry: Statement;
  readonly #insertActivity: Statement;

  constructor(db: DatabaseSync) {
    this.#position = prepare(db, POSITION);
    this.#savePosition = prepare(db, 'REPLACE INTO feed_positions (consumer, posting) VALUES (?, ?)');
    this.#getDaily = prepare(
      db,
      'SELECT credits, transactions FROM daily_totals WHERE account = ? AND day = ? AND kind = ? AND actor = ?',
    );
    this.#putDaily = prepare(db, 'REPLACE INTO daily_totals VALUES (?, ?, ?, ?, ?, ?)');
    this.#getExpiry = prepare(db, 'SELECT credits FROM expiry_totals WHERE account = ? AND hour = ?');
    this.#putExpiry = prepare(db, 'REPLACE INTO expiry_totals VALUES (?, ?, ?)');
    this.#insertActivity = prepare(db, 'INSERT OR IGNORE INTO account_activity (account, stretch) VALUES (?, ?)');
  }

  /** @returns false when the position is another by now: the part was taken meanwhile, or the totals are being rebuilt */
  save({ consumer, after, through, totals, activity }: FeedPart): boolean {
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
    for (const stretch of activity) this.#insertActivity.run(...stretch);
    this.#savePosition.run(consumer, through);
    return true;
  }
}
