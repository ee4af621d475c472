// What the console reads, from PostgreSQL, always from the primary, through the connections of the readers.

import type { Pool, QueryResult, QueryResultRow } from 'pg';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, inBurnOrder } from '../../ledger/cycle.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Series } from '../../ledger/movement.ts';
import type { Posting } from '../../ledger/posting.ts';
import { transactionId } from '../../ledger/transaction-id.ts';
import {
  type AccountReads,
  type AccountTransaction,
  assertLimit,
  CHART_CYCLES_MAX,
  type EndUserPage,
  type EndUserSearch,
  type HistoryPage,
  type HistoryRequest,
  historyTransactionOf,
  InvalidCursor,
  isUuid,
  type Overview,
  overviewOf,
  overviewSlots,
  uuidsOf,
  wholeTransactions,
} from '../account-reads.ts';
import type { Loaded } from '../loaded.ts';
import { bucketsApart } from './bucket.ts';
import type { DatabaseClock } from './database-clock.ts';
import type { EndUserReads } from './end-user-reads.ts';
import { keyOf } from './key.ts';
import { OVERVIEW, type OverviewRows } from './movements.ts';
import { type CycleRow, cycleOf, type PostingRow, postingOf } from './rows.ts';

/** No UUID comes after this one. */
const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * One who was never given anything has a row, and no posting.
 *
 * @param bucket the one that it concerns, since Citus looks for the latest posting of each within one shard only; all when null
 */
const endUsersOf = (bucket: number | null) => {
  const within = (table: string) => (bucket === null ? '' : ` AND ${table}.bucket = ${bucket}`);
  return `
  SELECT e.end_user, latest.created_at FROM scrip.end_users e CROSS JOIN LATERAL (
    SELECT created_at FROM scrip.postings p
    WHERE p.bucket = e.bucket AND p.account = e.account AND p.end_user = e.end_user${within('p')}
    ORDER BY p.transaction_id DESC LIMIT 1
  ) AS latest
  WHERE e.account = $1 AND e.end_user > $2 AND e.end_user >= $3 AND e.end_user <= $4${within('e')}
  ORDER BY e.end_user LIMIT $5`;
};

const RECENT = `
  SELECT p.* FROM scrip.postings p
  WHERE p.account = $1 AND p.transaction_id IN (
    SELECT DISTINCT transaction_id FROM scrip.postings WHERE account = $1 ORDER BY transaction_id DESC LIMIT $2
  )
  ORDER BY p.transaction_id DESC, p.end_user`;

const HISTORY = `
  SELECT p.* FROM scrip.postings p
  WHERE p.bucket = $1 AND p.account = $2 AND p.end_user = $3 AND p.transaction_id IN (
    SELECT DISTINCT transaction_id FROM scrip.postings
    WHERE bucket = $1 AND account = $2 AND end_user = $3 AND transaction_id < $4 AND transaction_id >= $5
    ORDER BY transaction_id DESC LIMIT $6
  )
  ORDER BY p.transaction_id DESC`;

const CYCLES_SINCE = `
  SELECT * FROM scrip.cycles WHERE bucket = $1 AND account = $2 AND end_user = $3 AND ends_at > $4
  ORDER BY ends_at DESC LIMIT ${CHART_CYCLES_MAX}`;

/** How the store reads end users, and what it does with errors. */
export interface StoreReads {
  readonly endUsers: EndUserReads;
  readonly unavailable: (error: unknown) => never;
  readonly isCitus: boolean;
}

export class PostgresAccountReads implements AccountReads {
  readonly #pool: Pool;
  readonly #clock: DatabaseClock;
  readonly #reads: StoreReads;

  constructor(pool: Pool, clock: DatabaseClock, reads: StoreReads) {
    this.#pool = pool;
    this.#clock = clock;
    this.#reads = reads;
  }

  async nameOf(account: number): Promise<string | null> {
    const { rows } = await this.#query('SELECT name FROM scrip.accounts WHERE account = $1', [account]);
    return rows[0]?.name ?? null;
  }

  async endUsers(account: number, { after, prefix, limit }: EndUserSearch): Promise<EndUserPage> {
    assertLimit(limit);
    if (after !== null && !isUuid(after)) throw new InvalidCursor();
    const range = uuidsOf(prefix);
    if (range === null) return { endUsers: [], next: null };
    const before = after ?? '00000000-0000-0000-0000-000000000000';
    const values = [account, before, range.first, range.last, limit + 1];
    const asked = bucketsApart(this.#reads.isCitus).map((bucket) => this.#query(endUsersOf(bucket), values));
    const rows = (await Promise.all(asked)).flatMap((result) => result.rows);
    rows.sort((a, b) => (a.end_user < b.end_user ? -1 : 1));
    const endUsers = rows
      .slice(0, limit)
      .map(({ end_user, created_at }) => ({ endUser: end_user, latestActivity: created_at }));
    return { endUsers, next: rows.length > limit ? (endUsers.at(-1)?.endUser ?? null) : null };
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    const { rows } = await this.#query<PostingRow>(RECENT, [account, limit]);
    const whole = wholeTransactions(rows, (row) => `${row.end_user} ${row.transaction_id}`);
    return [...whole].slice(0, limit).map((each) => {
      const { postings: _, ...transaction } = historyTransactionOf(postingsOf(each));
      return { ...transaction, endUser: each[0].end_user };
    });
  }

  async history(user: EndUserKey, { from, limit, since }: HistoryRequest): Promise<HistoryPage> {
    assertLimit(limit);
    if (from !== null && !isUuid(from)) throw new InvalidCursor();
    const earliest = transactionId({ at: since ?? 0, sequence: 0, tail: '000000000000' });
    const values = [...keyOf(user), from ?? LAST_UUID, earliest, limit + 1];
    const [loaded, rows] = await this.#reads.endUsers.withPage<PostingRow>(user, { text: HISTORY, values });
    const all = [...wholeTransactions(rows, (row) => row.transaction_id)];
    const transactions = all.slice(0, limit).map((each) => historyTransactionOf(postingsOf(each)));
    const next = all.length > limit ? (transactions.at(-1)?.id ?? null) : null;
    return { ...loaded, transactions, next };
  }

  async cyclesSince(user: EndUserKey, since: Instant): Promise<Loaded> {
    const page = { text: CYCLES_SINCE, values: [...keyOf(user), since] };
    const [{ now }, rows] = await this.#reads.endUsers.withPage<CycleRow>(user, page);
    const cycles = inBurnOrder(rows.map(cycleOf));
    cycles.forEach(assertCycle);
    return { now, cycles };
  }

  async overview(account: number, { days }: { days: number }): Promise<Overview> {
    const { firstDay, firstHour } = overviewSlots(await this.#now(), days);
    const { rows }: OverviewRows = await this.#query(OVERVIEW, [account, firstHour, firstDay]);
    const movements = rows.map(({ series, credits, ...rest }) => ({
      ...rest,
      series: series as Series,
      credits: BigInt(credits),
    }));
    // Asked for after the rows, so that it is not before what they speak of.
    return overviewOf(movements, await this.#now(), days);
  }

  async #now(): Promise<Instant> {
    return this.#clock.notBefore(await this.#clock.ask(this.#pool).catch(this.#reads.unavailable));
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows of ad-hoc columns, as in pg itself
  #query<Row extends QueryResultRow = any>(text: string, values: unknown[]): Promise<QueryResult<Row>> {
    return this.#pool.query<Row>(text, values).catch(this.#reads.unavailable);
  }
}

function postingsOf([first, ...others]: readonly [PostingRow, ...PostingRow[]]): [Posting, ...Posting[]] {
  return [postingOf(first), ...others.map(postingOf)];
}
