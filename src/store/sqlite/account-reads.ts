// What the console reads, from a ledger file. End users are found by skipping from one to the next among the holdings;
// what happened lately in an account, by the stretches of postings that hold some of it.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle, inBurnOrder } from '../../ledger/cycle.ts';
import type { Instant } from '../../ledger/instant.ts';
import { SERIES, type Series } from '../../ledger/movement.ts';
import type { Posting } from '../../ledger/posting.ts';
import {
  type AccountReads,
  type AccountTransaction,
  assertLimit,
  CHART_CYCLES_MAX,
  type EndUserPage,
  type EndUserSearch,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  InvalidCursor,
  isUuid,
  laterFirst,
  type Overview,
  overviewOf,
  overviewSlots,
  type StoredMovement,
  uuidsOf,
  wholeTransactions,
} from '../account-reads.ts';
import type { Loaded } from '../loaded.ts';
import { JournalReader } from './journal.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { creditsOfParts, rangeOf } from './movements.ts';
import {
  CYCLE_COLUMNS,
  cycleOf,
  END_OF_TIME,
  POSTING_COLUMNS,
  PostingsReader,
  postingOf,
  prepare,
  type Row,
  rowsOf,
} from './rows.ts';
import { bytesOf, uuidOf } from './uuid.ts';

const POSTING_NUMBER = /^[1-9]\d{0,14}$/;

/** What these reads need of the store. */
export interface Reading {
  /** How the store calls all its reads: a broken row stops the ledger. */
  readonly read: <Result>(read: () => Result) => Result;
  /** And those of one end user. */
  readonly readOf: <Result extends Loaded>(user: EndUserKey, read: () => Result) => Promise<Result>;
  /** The latest posting of an end user that may wait to be posted. */
  readonly headOf: (user: EndUserKey) => number | undefined;
}

interface Numbered {
  readonly number: number;
  readonly posting: Posting;
}

export class SqliteAccountReads implements AccountReads {
  readonly #clock: LedgerClock;
  readonly #read: Reading['read'];
  readonly #readOf: Reading['readOf'];
  readonly #headOf: Reading['headOf'];
  readonly #journal: JournalReader;
  readonly #chain: PostingsReader;
  readonly #name: StatementSync;
  readonly #nextEndUser: StatementSync;
  readonly #latestActivity: StatementSync;
  readonly #stretches: StatementSync;
  readonly #stretch: StatementSync;
  readonly #cycles: StatementSync;
  readonly #movements: StatementSync;

  constructor(db: DatabaseSync, clock: LedgerClock, { read, readOf, headOf }: Reading) {
    this.#clock = clock;
    this.#read = read;
    this.#readOf = readOf;
    this.#headOf = headOf;
    this.#journal = new JournalReader(db);
    this.#chain = new PostingsReader(db);
    this.#name = prepare(db, 'SELECT name FROM accounts WHERE account = ?');
    this.#nextEndUser = prepare(
      db,
      'SELECT end_user FROM holdings WHERE account = ? AND end_user >= ? AND end_user <= ? ORDER BY end_user LIMIT 1',
    );
    this.#latestActivity = prepare(
      db,
      `SELECT created_at FROM holdings h JOIN postings p ON p.posting = max(h.latest_posting, ?)
       WHERE h.account = ? AND h.end_user = ? AND h.ends_at = ${END_OF_TIME}`,
    );
    this.#stretches = prepare(db, 'SELECT stretch FROM account_activity WHERE account = ? ORDER BY stretch DESC');
    this.#stretch = prepare(
      db,
      `SELECT ${POSTING_COLUMNS}, end_user FROM postings
       WHERE posting BETWEEN ? AND ? AND account = ? ORDER BY posting DESC`,
    );
    this.#cycles = prepare(
      db,
      `SELECT ${CYCLE_COLUMNS} FROM holdings WHERE account = ? AND end_user = ? AND ends_at > ? AND ends_at < ${END_OF_TIME}
       ORDER BY ends_at DESC LIMIT ${CHART_CYCLES_MAX}`,
    );
    this.#movements = prepare(
      db,
      `SELECT series, slot, high, low, count FROM movement_entries WHERE account = ?1 AND series = ${SERIES.held} AND slot >= ?2
       UNION ALL
       SELECT series, slot, high, low, count FROM movement_entries
       WHERE account = ?1 AND series IN (${Object.values(SERIES).slice(1)}) AND slot >= ?3`,
    );
  }

  async nameOf(account: number): Promise<string | null> {
    return this.#read(() => (rowsOf(this.#name, account)[0]?.[0] as string | undefined) ?? null);
  }

  async endUsers(account: number, { after, prefix, limit }: EndUserSearch): Promise<EndUserPage> {
    assertLimit(limit);
    if (after !== null && !isUuid(after)) throw new InvalidCursor();
    const range = uuidsOf(prefix);
    if (range === null || (after !== null && after >= range.last)) return { endUsers: [], next: null };
    return this.#read(() => {
      const endUsers: { endUser: string; latestActivity: Instant }[] = [];
      let from = after === null || after < range.first ? bytesOf(range.first) : behind(bytesOf(after));
      for (;;) {
        const [row] = rowsOf(this.#nextEndUser, account, from, bytesOf(range.last));
        if (row === undefined) return { endUsers, next: null };
        if (endUsers.length === limit) return { endUsers, next: endUsers.at(-1)?.endUser ?? null };
        const bytes = row[0] as Uint8Array;
        const endUser = uuidOf(bytes);
        const [latest] = rowsOf(this.#latestActivity, this.#headOf({ account, endUser }) ?? 0, account, bytes);
        if (latest) endUsers.push({ endUser, latestActivity: latest[0] as number });
        from = behind(bytes);
      }
    });
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    return this.#read(() => {
      const transactions: AccountTransaction[] = [];
      const whole = wholeTransactions(this.#latestPostings(account), ({ posting }) => posting.transactionId);
      for (const entries of whole) {
        const [{ endUser }] = entries;
        const { postings: _, ...transaction } = historyTransactionOf(postingsOf(entries));
        if (transactions.push({ ...transaction, endUser }) === limit) break;
      }
      // Renewals that were entered late stand where they belong.
      return transactions.sort(laterFirst);
    });
  }

  async history(user: EndUserKey, { from, limit, since }: HistoryRequest): Promise<HistoryPage> {
    assertLimit(limit);
    return this.#readOf(user, () => {
      const holdings = this.#journal.read(user, this.#headOf(user), this.#clock.now());
      const now = this.#clock.now();
      const start = from === null ? holdings.latestPosting : this.#startAt(from, user);
      const transactions: HistoryTransaction[] = [];
      const chain = this.#chain.from(start, user);
      for (const entries of wholeTransactions(chain, ({ posting }) => posting.transactionId)) {
        const [{ number, posting }] = entries;
        if (since !== null && posting.createdAt < since) break;
        if (transactions.length === limit) return { now, cycles: holdings.cycles, transactions, next: String(number) };
        transactions.push(historyTransactionOf(postingsOf(entries)));
      }
      return { now, cycles: holdings.cycles, transactions, next: null };
    });
  }

  async cyclesSince(user: EndUserKey, since: Instant): Promise<Loaded> {
    return this.#readOf(user, () => {
      const head = this.#headOf(user);
      const cycles = head === undefined ? this.#storedSince(user, since) : this.#currentSince(user, head, since);
      cycles.forEach(assertCycle);
      return { now: this.#clock.now(), cycles: inBurnOrder(cycles) };
    });
  }

  async overview(account: number, { days }: { days: number }): Promise<Overview> {
    return this.#read(() => {
      const { firstDay, firstHour } = overviewSlots(this.#clock.now(), days);
      const rows = rowsOf(this.#movements, account, firstHour, firstDay);
      // Taken after the rows are read, so that it is not before what they speak of.
      return overviewOf(rows.map(movementOf), this.#clock.now(), days);
    });
  }

  #storedSince({ account, endUser }: EndUserKey, since: Instant): Cycle[] {
    return rowsOf(this.#cycles, account, bytesOf(endUser), since).map(cycleOf);
  }

  #currentSince(user: EndUserKey, head: number, since: Instant): Cycle[] {
    const { current } = this.#journal.redo(user, head, since);
    const cycles = current.cycles.filter(({ end }) => end > since).sort((a, b) => a.end - b.end);
    return cycles.slice(-CHART_CYCLES_MAX);
  }

  *#latestPostings(account: number): Generator<{ posting: Posting; endUser: string }> {
    for (const row of this.#stretches.iterate(account)) {
      const [stretch] = row as unknown as Row;
      for (const each of rowsOf(this.#stretch, ...rangeOf(stretch as number), account))
        yield { posting: postingOf(each), endUser: uuidOf(each.at(-1) as Uint8Array) };
    }
  }

  /** A page begins with the latest posting of a transaction of this end user. */
  #startAt(cursor: string, user: EndUserKey): number {
    const number = POSTING_NUMBER.test(cursor) ? Number(cursor) : 0;
    const [here] = this.#chain.from(number, user);
    const [later] = this.#chain.from(number + 1, user);
    if (here === undefined || later?.posting.transactionId === here.posting.transactionId) throw new InvalidCursor();
    return number;
  }
}

function postingsOf([first, ...others]: readonly [Pick<Numbered, 'posting'>, ...Pick<Numbered, 'posting'>[]]): [
  Posting,
  ...Posting[],
] {
  return [first.posting, ...others.map(({ posting }) => posting)];
}

/** What sorts right behind these bytes. */
function behind(bytes: Uint8Array): Uint8Array {
  return Uint8Array.of(...bytes, 0);
}

function movementOf([series, slot, high, low, count]: Row): StoredMovement {
  return {
    series: series as Series,
    slot: slot as number,
    credits: creditsOfParts(high as number, low as number),
    count: count as number,
  };
}
