// Reads an account and its end users for the console, always from the primary.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { CycleType } from '../../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../../ledger/instant.ts';
import { idsBetween, type TransactionId } from '../../../ledger/transaction-id.ts';
import {
  type AccountTransaction,
  assertLimit,
  CHART_CYCLES_MAX,
  CHART_POSTINGS_MAX,
  type ChartHistory,
  type ConsoleStore,
  cyclesToName,
  HISTORY_POSTINGS_MAX,
  type HistoryPage,
  type HistoryRequest,
  historyTransactionOf,
  laterFirst,
  type Opening,
  type Overview,
  type OverviewRequest,
  overviewOf,
  overviewStart,
  wholeTransactions,
} from '../../console-store.ts';
import {
  type EndUserPage,
  isUuid,
  type ListedEndUser,
  type ListRequest,
  listQuery,
  pageOf,
} from '../../end-user-lists.ts';
import type { EndUserCounts } from '../../end-user-summaries.ts';
import { InvalidCursor } from '../../store-fault.ts';
import { recordedSince } from '../journal/history-reader.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf } from '../journal/totals-rows.ts';
import { exactInteger, prepared, sql, type TextRow } from '../pool/connection.ts';
import { keyOf, OF_END_USER } from '../rows/key.ts';
import { POSTING_COLUMNS, postingOf } from '../rows/ledger-rows.ts';
import { LAST_ID, type PostgresLedgerStore } from './ledger-store.ts';

/**
 * Up to `$5` transactions among the latest `$9` postings, in a single scan of the primary key; only those of kind `$8`,
 * unless it is null.
 */
const HISTORY = prepared(
  'history',
  `SELECT ${POSTING_COLUMNS} FROM (
     SELECT ${POSTING_COLUMNS}, dense_rank() OVER (ORDER BY transaction_id DESC) AS place FROM (
       SELECT ${POSTING_COLUMNS} FROM scrip.postings
       WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $6 AND $7
       ORDER BY transaction_id DESC FETCH FIRST ($9) ROWS WITH TIES
     ) AS latest WHERE $8::text IS NULL OR kind = $8
   ) AS ranked WHERE place <= $5 ORDER BY transaction_id DESC`,
);

/** The oldest transaction that `HISTORY` has read, if there may be older ones. */
const HISTORY_END = prepared(
  'history_end',
  `SELECT transaction_id FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $5 AND $6
   ORDER BY transaction_id DESC OFFSET $7 LIMIT 1`,
);

const OPENINGS = prepared(
  'openings',
  `SELECT cycle_id, cycle_type, amount, validity_days FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id = ANY ($4::uuid[]) AND cycle_id = transaction_id AND cycle_type IS NOT NULL`,
);

const EVERYTHING = idsBetween(0, INSTANT_MAX);

/**
 * Read before the totals and summaries, which may therefore include more than these instants indicate, but never less.
 */
const EARLIEST_WAITING = sql(`SELECT min(at) FROM scrip.feed WHERE consumer = 'totals'`);
const EARLIEST_STALE = sql('SELECT min(since) FROM scrip.stale_end_users');

export class PostgresConsoleStore implements ConsoleStore {
  readonly #ledger: PostgresLedgerStore;

  constructor(ledger: PostgresLedgerStore) {
    this.#ledger = ledger;
  }

  nameOf(account: number): Promise<string | null> {
    return this.#ledger.attempt(async () => {
      const rows = await this.#ledger.database.pool.rows(
        sql('SELECT name FROM scrip.accounts WHERE account = $1', [account]),
      );
      return rows[0]?.[0] ?? null;
    });
  }

  async endUsers(account: number, request: ListRequest): Promise<EndUserPage> {
    const query = listQuery(request);
    let parameters = 1;
    const numbered = query?.condition.replaceAll('?', () => `$${++parameters}`);
    const list = `SELECT end_user, balance, expires_at, latest_activity FROM scrip.end_user_summaries
      WHERE account = $1${numbered} ORDER BY ${query?.order} LIMIT $${parameters + 1}`;
    return this.#ledger.attempt(async () => {
      const { pool, clock } = this.#ledger.database;
      const [before, waiting, stale, found] = await pool.send([
        clock.query,
        EARLIEST_WAITING,
        EARLIEST_STALE,
        ...(query === null ? [] : [sql(list, [account, ...query.values, request.limit + 1])]),
      ]);
      const asOf = clock.read(before?.rows ?? []);
      const earliest = [waiting, stale].flatMap((result) => result?.rows[0]?.[0] ?? []).map(exactInteger);
      const listed = (found?.rows ?? []).map(listedOf);
      return { asOf: Math.min(asOf, ...earliest.map((at) => at - 1)), ...pageOf(listed, request) };
    });
  }

  endUserCounts(account: number): Promise<EndUserCounts> {
    return this.#ledger.attempt(async () => {
      const sums = `SELECT coalesce(sum(end_users), 0), coalesce(sum(with_credits), 0) FROM scrip.end_user_counts
        WHERE account = $1`;
      const [row] = await this.#ledger.database.pool.rows(sql(sums, [account]));
      return { endUsers: Number(row?.[0]), withCredits: Number(row?.[1]) };
    });
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    return this.#ledger.attempt(async () => {
      const { pool } = this.#ledger.database;
      const active = await pool.rows(
        sql(
          `SELECT end_user FROM scrip.end_user_summaries
           WHERE account = $1 ORDER BY latest_activity DESC, end_user DESC LIMIT $2`,
          [account, limit],
        ),
      );
      const endUsers = active.map(([endUser]) => endUser as string);
      const latest = endUsers.map((endUser) =>
        HISTORY([...keyOf({ account, endUser }), LAST_ID, 1, ...Object.values(EVERYTHING), null, HISTORY_POSTINGS_MAX]),
      );
      const results = latest.length === 0 ? [] : await pool.send(latest);
      return endUsers
        .flatMap((endUser, index) => {
          const [first, ...others] = (results[index]?.rows ?? []).map((row) => postingOf(row));
          if (first === undefined) return [];
          const { postings: _, ...transaction } = historyTransactionOf([first, ...others]);
          return [{ ...transaction, endUser }];
        })
        .sort(laterFirst);
    });
  }

  async history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage> {
    const { from, limit, within = EVERYTHING, kind = null } = request;
    assertLimit(limit);
    if (from !== null && !isUuid(from)) throw new InvalidCursor();
    const [key, range] = [keyOf(user), [within.first, within.last]] as const;
    return this.#ledger.attempt(async () => {
      const { pool } = this.#ledger.database;
      const before = from ?? LAST_ID;
      const page = HISTORY([...key, before, limit + 1, ...range, kind, HISTORY_POSTINGS_MAX]);
      const { now, state, rows } = await this.#ledger.page(user, page);
      const postings = rows.map((row) => postingOf(row));
      const all = [...wholeTransactions(postings, ({ transactionId }) => transactionId)];
      const transactions = all.slice(0, limit).map(historyTransactionOf);
      const isFull = all.length > limit;
      const [opened, end] = await pool.send([
        OPENINGS([...key, `{${cyclesToName(transactions)}}`]),
        ...(isFull ? [] : [HISTORY_END([...key, before, ...range, HISTORY_POSTINGS_MAX - 1])]),
      ]);
      const next = isFull ? transactions.at(-1)?.id : end?.rows[0]?.[0];
      return { now, state, transactions, next: next ?? null, openings: new Map(opened?.rows.map(openingOf)) };
    });
  }

  chartHistory(user: EndUserKey, since: Instant): Promise<ChartHistory | null> {
    return this.#ledger.attempt(async () => {
      const { now, state } = await this.#ledger.load(user);
      if (state.cycles.length > CHART_CYCLES_MAX) return null;
      const range = { since, now, max: CHART_POSTINGS_MAX };
      return { now, ...(await recordedSince(this.#ledger.database.pool, user, range)) };
    });
  }

  /**
   * Everything up to `asOf` is included, except batches that were being committed at the time. `asOf` is just before
   * the earliest batch in the feed, or the present if the feed is empty.
   */
  overview(account: number, request: OverviewRequest): Promise<Overview> {
    return this.#ledger.attempt(async () => {
      const { pool, clock } = this.#ledger.database;
      const { firstDay, firstHour } = overviewStart(clock.latest, request.days);
      const results = await pool.send([
        clock.query,
        EARLIEST_WAITING,
        sql(`${DAILY_TOTALS} WHERE account = $1 AND day >= $2`, [account, firstDay]),
        sql(`${EXPIRY_TOTALS} WHERE account = $1 AND hour >= $2`, [account, firstHour]),
        clock.query,
      ]);
      const [before = [], waiting = [], daily = [], expiries = [], after = []] = results.map(({ rows }) => rows);
      const earliest = waiting[0]?.[0] ?? null;
      const now = clock.notBefore(clock.read(after));
      const asOf = earliest === null ? clock.read(before) : exactInteger(earliest) - 1;
      return overviewOf(totalsOf(daily, expiries), { now, asOf: Math.min(asOf, now) }, request);
    });
  }
}

function openingOf([id, type, amount, validityDays]: TextRow): [TransactionId, Opening] {
  const opening = { type: type as CycleType, amount: exactInteger(amount), validityDays: Number(validityDays) };
  return [id as string, opening];
}

function listedOf([endUser, balance, expiresAt, latestActivity]: TextRow): ListedEndUser {
  return {
    endUser: endUser as string,
    balance: exactInteger(balance),
    expiresAt: expiresAt === null ? null : exactInteger(expiresAt),
    latestActivity: exactInteger(latestActivity),
  };
}
