// What the console reads from a ledger file. End users are found by skipping from one to the next among the balances; the
// recent activity of an account by the stretches of the journal that hold some of it.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting, PostingKind } from '../../../ledger/posting.ts';
import {
  type AccountTransaction,
  assertLimit,
  CHART_CYCLES_MAX,
  CHART_POSTINGS_MAX,
  type ChartHistory,
  type ConsoleStore,
  type EndUserPage,
  type EndUserSearch,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  isUuid,
  laterFirst,
  type Overview,
  overviewOf,
  overviewStart,
  uuidsWithPrefix,
  wholeTransactions,
} from '../../console-store.ts';
import type { LoadedEndUser } from '../../ledger-store.ts';
import { InvalidCursor } from '../../store-fault.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { bytesOf, uuidOf, uuidOfHex } from '../file/uuid.ts';
import { stretchRange } from '../journal/feed.ts';
import { POSTING_COLUMN_COUNT, postingColumns, postingOf } from '../journal/posting-rows.ts';
import type { SqliteLedgerStore } from './ledger-store.ts';

const POSTING_NUMBER = /^[1-9]\d{0,14}$/;

export class SqliteConsoleStore implements ConsoleStore {
  readonly #ledger: SqliteLedgerStore;
  readonly #name: Statement;
  readonly #nextEndUser: Statement;
  readonly #createdAt: Statement;
  readonly #stretches: Statement;
  readonly #stretch: Statement;
  readonly #unconsumed: Statement;
  readonly #daily: Statement;
  readonly #expiries: Statement;
  readonly #consumed: Statement;

  constructor(ledger: SqliteLedgerStore) {
    const { db } = ledger;
    this.#ledger = ledger;
    this.#name = prepare(db, 'SELECT name FROM accounts WHERE account = ?');
    this.#nextEndUser = prepare(
      db,
      'SELECT end_user FROM balances WHERE account = ? AND end_user >= ? AND end_user <= ? ORDER BY end_user LIMIT 1',
    );
    this.#createdAt = prepare(db, 'SELECT created_at FROM postings WHERE posting = ?');
    this.#stretches = prepare(db, 'SELECT stretch FROM account_activity WHERE account = ? ORDER BY stretch DESC');
    const posting = `SELECT ${postingColumns('p')}, p.posting, hex(p.end_user) FROM postings AS p`;
    this.#stretch = prepare(db, `${posting} WHERE posting BETWEEN ? AND ? AND account = ? ORDER BY posting DESC`);
    const position = `(SELECT coalesce(max(posting), 0) FROM feed_positions WHERE consumer = 'totals')`;
    this.#unconsumed = prepare(db, `${posting} WHERE posting > ${position} AND account = ? ORDER BY posting DESC`);
    this.#daily = prepare(
      db,
      'SELECT day, kind, credits, transactions FROM daily_totals WHERE account = ? AND day >= ?',
    );
    this.#expiries = prepare(db, 'SELECT hour, credits FROM expiry_totals WHERE account = ? AND hour >= ?');
    this.#consumed = prepare(
      db,
      `SELECT (SELECT created_at FROM postings WHERE posting = ${position}),
         ${position} = (SELECT coalesce(max(posting), 0) FROM postings)`,
    );
  }

  async nameOf(account: number): Promise<string | null> {
    return this.#ledger.attempt(() => (this.#name.get(account)?.[0] as string | undefined) ?? null);
  }

  async endUsers(account: number, { after, prefix, limit }: EndUserSearch): Promise<EndUserPage> {
    assertLimit(limit);
    if (after !== null && !isUuid(after)) throw new InvalidCursor();
    const range = uuidsWithPrefix(prefix);
    if (range === null || (after !== null && after >= range.last)) return { endUsers: [], next: null };
    return this.#ledger.attempt(() => {
      const first = after === null || after < range.first ? range.first : after;
      const found = this.#endUsersFrom(account, { first, last: range.last })
        .filter((endUser) => endUser !== after)
        .take(limit + 1)
        .toArray();
      const endUsers = found.slice(0, limit).map((endUser) => {
        const latest = this.#ledger.latestPosting({ account, endUser });
        return { endUser, latestActivity: Number(this.#createdAt.get(latest)?.[0]) };
      });
      return { endUsers, next: found.length > limit ? (endUsers.at(-1)?.endUser ?? null) : null };
    });
  }

  /** In order: those among the balances, and those that are only in the journal so far. */
  *#endUsersFrom(account: number, { first, last }: { first: string; last: string }): Generator<string> {
    const inRange = (endUser: string) => endUser >= first && endUser <= last;
    const pending = [...new Set(this.#ledger.pendingEndUsers(account))].filter(inRange).sort();
    let from = bytesOf(first);
    for (let next = 0; ; ) {
      const row = this.#nextEndUser.get(account, from, bytesOf(last));
      const stored = row === undefined ? null : uuidOf(row[0] as Uint8Array);
      while (next < pending.length && (stored === null || (pending[next] as string) < stored))
        yield pending[next++] as string;
      if (stored === null) return;
      if (pending[next] === stored) next += 1;
      yield stored;
      from = behind(bytesOf(stored));
    }
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    return this.#ledger.attempt(() => {
      const transactions: AccountTransaction[] = [];
      const postings = this.#latestPostings(account);
      for (const entries of wholeTransactions(postings, ({ posting }) => posting.transactionId)) {
        const [{ endUser }] = entries;
        const { postings: _, ...transaction } = historyTransactionOf(postingsOf(entries));
        if (transactions.push({ ...transaction, endUser }) === limit) break;
      }
      // Renewals that were entered late are sorted to their instant.
      return transactions.sort(laterFirst);
    });
  }

  async history(user: EndUserKey, { from, limit }: HistoryRequest): Promise<HistoryPage> {
    assertLimit(limit);
    return this.#ledger.enqueue(user, () => {
      const { now, state, latestPosting } = this.#ledger.read(user);
      const start = from === null ? latestPosting : this.#startAt(from, user);
      const transactions: HistoryTransaction[] = [];
      const postings = this.#ledger.postings.backwards(start, user);
      for (const entries of wholeTransactions(postings, ({ posting }) => posting.transactionId)) {
        if (transactions.length === limit) return { now, state, transactions, next: String(entries[0].number) };
        transactions.push(historyTransactionOf(postingsOf(entries)));
      }
      return { now, state, transactions, next: null };
    });
  }

  async chartHistory(user: EndUserKey, since: Instant): Promise<ChartHistory | null> {
    const read = () => {
      const { now, state, latestPosting } = this.#ledger.read(user);
      if (state.cycles.length > CHART_CYCLES_MAX) return { now, state, chart: null };
      const history = this.#ledger.history.since(user, latestPosting, since, CHART_POSTINGS_MAX);
      return { now, state, chart: { now, ...history } };
    };
    return (await this.#ledger.enqueue<LoadedEndUser & { chart: ChartHistory | null }>(user, read)).chart;
  }

  async overview(account: number, { days }: { days: number }): Promise<Overview> {
    return this.#snapshot(() => {
      const began = this.#ledger.clock.now();
      const { firstDay, firstHour } = overviewStart(began, days);
      const daily = this.#daily.all(account, firstDay).map(([day, kind, credits, transactions]) => ({
        day: day as number,
        kind: kind as PostingKind,
        credits: BigInt(credits as string),
        transactions: transactions as number,
      }));
      const expiries = this.#expiries.all(account, firstHour).map(([hour, credits]) => ({
        hour: hour as number,
        credits: BigInt(credits as string),
      }));
      const [at, isAll] = this.#consumed.get() as Row;
      // Taken after the rows are read, so that it is not before what they count.
      const now = this.#ledger.clock.now();
      return overviewOf({ daily, expiries }, { now, asOf: isAll === 1 ? began : Number(at ?? 0) }, days);
    });
  }

  /** A read of several statements, which all see the same. */
  #snapshot<Result>(read: () => Result): Result {
    const { db } = this.#ledger;
    return this.#ledger.attempt(() => {
      db.exec('BEGIN');
      try {
        return read();
      } finally {
        if (db.isTransaction) db.exec('COMMIT');
      }
    });
  }

  /** What no consumer has looked at yet, then the stretches that hold some of the account. */
  *#latestPostings(account: number): Generator<{ number: number; posting: Posting; endUser: string }> {
    let seen = Number.POSITIVE_INFINITY;
    for (const row of this.#unconsumed.iterate(account)) {
      const entry = accountPosting(row);
      seen = entry.number;
      yield entry;
    }
    for (const row of this.#stretches.iterate(account)) {
      const [first, last] = stretchRange(row[0] as number);
      for (const each of this.#stretch.all(first, Math.min(last, seen - 1), account)) yield accountPosting(each);
    }
  }

  /** A page begins with the latest posting of a transaction of this end user. */
  #startAt(cursor: string, user: EndUserKey): number {
    const number = POSTING_NUMBER.test(cursor) ? Number(cursor) : 0;
    const [here] = this.#ledger.postings.backwards(number, user);
    const [later] = this.#ledger.postings.backwards(number + 1, user);
    if (here === undefined || later?.posting.transactionId === here.posting.transactionId) throw new InvalidCursor();
    return number;
  }
}

function accountPosting(row: Row): { number: number; posting: Posting; endUser: string } {
  const [number, digits] = row.slice(POSTING_COLUMN_COUNT) as [number, string];
  return { number, posting: postingOf(row), endUser: uuidOfHex(digits) };
}

type Entry = { readonly posting: Posting };

function postingsOf([first, ...others]: readonly [Entry, ...Entry[]]): [Posting, ...Posting[]] {
  return [first.posting, ...others.map(({ posting }) => posting)];
}

/** What sorts right behind these bytes. */
function behind(bytes: Uint8Array): Uint8Array {
  return Uint8Array.of(...bytes, 0);
}
