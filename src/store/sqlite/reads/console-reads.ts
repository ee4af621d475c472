// Reads data for the console from a ledger file.

import type { Instant } from '../../../ledger/instant.ts';
import { type PostingKind, transactionOf } from '../../../ledger/posting.ts';
import {
  type AccountTransaction,
  assertLimit,
  type ConsoleStore,
  type Overview,
  type OverviewRequest,
  overviewOf,
  overviewStart,
} from '../../console-store.ts';
import {
  type EndUserPage,
  type ListedEndUser,
  type ListQuery,
  type ListRequest,
  listQuery,
  pageOf,
} from '../../end-user-lists.ts';
import type { EndUserCounts } from '../../end-user-summaries.ts';
import { wholeTransactions } from '../../transaction-history.ts';
import { prepare, type Row, readTogether, type Statement } from '../file/statements.ts';
import { bytesOf, uuidOfHex } from '../file/uuid.ts';
import { EVENTS } from '../journal/events.ts';
import { FeedPosition } from '../journal/feed.ts';
import { TOTALS } from '../journal/totals.ts';
import { oldestFirst } from './history-pages.ts';
import type { SqliteLedgerStore } from './ledger-store.ts';

/**
 * Of the postings that a consumer has not processed yet, only the first this many are read. One would not be enough: a
 * renewal that is stored late has an earlier instant than the postings before it.
 */
const WAITING_MAX = 1_024;

export class SqliteConsoleStore implements ConsoleStore {
  readonly #ledger: SqliteLedgerStore;
  readonly #name: Statement;
  readonly #counts: Statement;
  readonly #recent: Statement;
  readonly #daily: Statement;
  readonly #expiries: Statement;
  readonly #waiting: Statement;
  readonly #totals: FeedPosition;
  readonly #events: FeedPosition;
  readonly #dueSummary: Statement;

  constructor(ledger: SqliteLedgerStore) {
    const { db } = ledger;
    this.#ledger = ledger;
    this.#name = prepare(db, 'SELECT name FROM accounts WHERE account = ?');
    this.#counts = prepare(db, 'SELECT end_users, with_credits FROM end_user_counts WHERE account = ?');
    this.#recent = prepare(
      db,
      `SELECT hex(end_user), latest_posting FROM end_user_summaries
       WHERE account = ? ORDER BY latest_activity DESC, end_user DESC LIMIT ?`,
    );
    this.#daily = prepare(
      db,
      'SELECT day, kind, actor, credits, transactions FROM daily_totals WHERE account = ? AND day >= ?',
    );
    this.#expiries = prepare(db, 'SELECT hour, credits FROM expiry_totals WHERE account = ? AND hour >= ?');
    this.#waiting = prepare(
      db,
      `SELECT min(created_at) FROM (SELECT created_at FROM postings WHERE posting > ? ORDER BY posting LIMIT ${WAITING_MAX})`,
    );
    this.#totals = new FeedPosition(db, TOTALS);
    this.#events = new FeedPosition(db, EVENTS);
    this.#dueSummary = prepare(db, 'SELECT min(due_at) FROM end_user_summaries WHERE due_at <= ?');
  }

  async nameOf(account: number): Promise<string | null> {
    return this.#ledger.attempt(() => (this.#name.get(account)?.[0] as string | undefined) ?? null);
  }

  async endUsers(account: number, request: ListRequest): Promise<EndUserPage> {
    const query = listQuery(request);
    return this.#snapshot(() => {
      const counted = this.#countedUpTo(this.#events);
      const dueAt = this.#dueSummary.get(counted)?.[0] ?? null;
      const asOf = dueAt === null ? counted : (dueAt as Instant) - 1;
      if (query === null) return { asOf, endUsers: [], next: null };
      const values = query.values.map((value) => (typeof value === 'string' ? bytesOf(value) : value));
      const rows = prepare(this.#ledger.db, listSql(query)).all(account, ...values, request.limit + 1);
      return { asOf, ...pageOf(rows.map(listedOf), request) };
    });
  }

  async endUserCounts(account: number): Promise<EndUserCounts> {
    return this.#ledger.attempt(() => {
      const [endUsers, withCredits] = this.#counts.get(account) ?? [0, 0];
      return { endUsers: endUsers as number, withCredits: withCredits as number };
    });
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    return this.#snapshot(() =>
      this.#recent.all(account, limit).flatMap(([digits, latest]) => {
        const endUser = uuidOfHex(digits as string);
        const latestFirst = this.#ledger.postings.backwards(latest as number, { account, endUser });
        const [entries] = wholeTransactions(latestFirst, ({ posting }) => posting.transactionId);
        if (entries === undefined) return [];
        const postings = oldestFirst(entries);
        return [{ ...transactionOf(postings), postings, endUser }];
      }),
    );
  }

  async overview(account: number, request: OverviewRequest): Promise<Overview> {
    return this.#snapshot(() => {
      const asOf = this.#countedUpTo(this.#totals);
      const { firstDay, firstHour } = overviewStart(this.#ledger.clock.now(), request.days);
      const daily = this.#daily.all(account, firstDay).map(([day, kind, actor, credits, transactions]) => ({
        day: day as number,
        kind: kind as PostingKind,
        actor: actor as string,
        credits: BigInt(credits as string),
        transactions: transactions as number,
      }));
      const expiries = this.#expiries.all(account, firstHour).map(([hour, credits]) => ({
        hour: hour as number,
        credits: BigInt(credits as string),
      }));
      // Read the clock after the rows, so that `now` is not earlier than any posting that the totals include.
      const now = this.#ledger.clock.now();
      return overviewOf({ daily, expiries }, { now, asOf }, request);
    });
  }

  /** Returns the instant up to which a consumer has processed all postings. Call this within `#snapshot`. */
  #countedUpTo(position: FeedPosition): Instant {
    const now = this.#ledger.clock.now();
    const counted = position.read();
    const waiting = (this.#waiting.get(counted)?.[0] ?? null) as Instant | null;
    if (waiting === null) return now;
    return counted === 0 ? 0 : Math.min(now, waiting - 1);
  }

  /** Runs `read` in a transaction, so that all of its statements see the same snapshot. */
  #snapshot<Result>(read: () => Result): Result {
    return this.#ledger.attempt(() => readTogether(this.#ledger.db, read));
  }
}

/** The parameters of the SQL are the account, the values of the query, and the number of rows. */
export function listSql({ condition, order }: ListQuery): string {
  return `SELECT hex(end_user), balance, expires_at, latest_activity FROM end_user_summaries
    WHERE account = ?${condition} ORDER BY ${order} LIMIT ?`;
}

function listedOf([digits, balance, expiresAt, latestActivity]: Row): ListedEndUser {
  return {
    endUser: uuidOfHex(digits as string),
    balance: balance as number,
    expiresAt: expiresAt as number | null,
    latestActivity: latestActivity as number,
  };
}
