// What the console reads of an account and its end users, always from the primary.

import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
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
  historyTransactionOf,
  isUuid,
  type Overview,
  overviewOf,
  overviewStart,
  uuidsWithPrefix,
  wholeTransactions,
} from '../../console-store.ts';
import { InvalidCursor } from '../../store-fault.ts';
import type { Part } from '../citus/placement.ts';
import { recordedSince } from '../journal/history-reader.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf } from '../journal/totals-rows.ts';
import { exactInteger, prepared, sql } from '../pool/connection.ts';
import { keyOf, OF_END_USER } from '../rows/key.ts';
import { columnsOf, POSTING_COLUMNS, postingOf } from '../rows/ledger-rows.ts';
import { LAST_ID, type PostgresLedgerStore } from './ledger-store.ts';

/** Those that have a posting, from one on or behind it. Citus looks for the latest one of each within one part only. */
function endUsersOf(part: Part, isFrom: '>=' | '>'): string {
  return `
  SELECT e.end_user, latest.created_at FROM scrip.end_users e CROSS JOIN LATERAL (
    SELECT created_at FROM scrip.postings p
    WHERE p.bucket = e.bucket AND p.account = e.account AND p.end_user = e.end_user${part.within('p')}
    ORDER BY p.transaction_id DESC LIMIT 1
  ) AS latest
  WHERE e.account = $1 AND e.end_user ${isFrom} $2 AND e.end_user BETWEEN $3 AND $4${part.within('e')}
  ORDER BY e.end_user LIMIT $5`;
}

const RECENT = `
  SELECT ${columnsOf('p', POSTING_COLUMNS)}, p.end_user FROM scrip.postings p
  WHERE p.account = $1 AND p.transaction_id IN (
    SELECT DISTINCT transaction_id FROM scrip.postings WHERE account = $1 ORDER BY transaction_id DESC LIMIT $2
  )
  ORDER BY p.transaction_id DESC, p.end_user`;

const HISTORY = prepared(
  'history',
  `SELECT ${POSTING_COLUMNS} FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id IN (
     SELECT DISTINCT transaction_id FROM scrip.postings
     WHERE ${OF_END_USER} AND transaction_id < $4 ORDER BY transaction_id DESC LIMIT $5
   )
   ORDER BY transaction_id DESC`,
);

/** Asked for before the totals, which may be ahead of it. */
const EARLIEST_WAITING = sql(`SELECT min(at) FROM scrip.feed WHERE consumer = 'totals'`);

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

  async endUsers(account: number, { after, prefix, limit }: EndUserSearch): Promise<EndUserPage> {
    assertLimit(limit);
    if (after !== null && !isUuid(after)) throw new InvalidCursor();
    const range = uuidsWithPrefix(prefix);
    if (range === null) return { endUsers: [], next: null };
    const values = [account, after ?? range.first, range.first, range.last, limit + 1];
    const isFrom = after === null ? '>=' : '>';
    return this.#ledger.attempt(async () => {
      const { pool, placement } = this.#ledger.database;
      const found = await Promise.all(placement.parts.map((part) => pool.rows(sql(endUsersOf(part, isFrom), values))));
      const all = found
        .flat()
        .map(([endUser, createdAt]) => ({ endUser: endUser as string, latestActivity: exactInteger(createdAt) }))
        .sort((a, b) => (a.endUser < b.endUser ? -1 : 1));
      const endUsers = all.slice(0, limit);
      return { endUsers, next: all.length > limit ? (endUsers.at(-1)?.endUser ?? null) : null };
    });
  }

  async recent(account: number, limit: number): Promise<readonly AccountTransaction[]> {
    assertLimit(limit);
    return this.#ledger.attempt(async () => {
      const rows = await this.#ledger.database.pool.rows(sql(RECENT, [account, limit]));
      const entries = rows.map((row) => ({ posting: postingOf(row), endUser: row.at(-1) as string }));
      const whole = wholeTransactions(entries, ({ posting, endUser }) => `${endUser} ${posting.transactionId}`);
      return [...whole].slice(0, limit).map(([first, ...others]) => {
        const postings = [first.posting, ...others.map(({ posting }) => posting)] as const;
        const { postings: _, ...transaction } = historyTransactionOf(postings);
        return { ...transaction, endUser: first.endUser };
      });
    });
  }

  async history(user: EndUserKey, { from, limit }: HistoryRequest): Promise<HistoryPage> {
    assertLimit(limit);
    if (from !== null && !isUuid(from)) throw new InvalidCursor();
    return this.#ledger.attempt(async () => {
      const page = HISTORY([...keyOf(user), from ?? LAST_ID, limit + 1]);
      const { now, state, rows } = await this.#ledger.page(user, page);
      const postings = rows.map((row) => postingOf(row));
      const all = [...wholeTransactions(postings, ({ transactionId }) => transactionId)];
      const transactions = all.slice(0, limit).map(historyTransactionOf);
      return { now, state, transactions, next: all.length > limit ? (transactions.at(-1)?.id ?? null) : null };
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
   * Up to `asOf`, which is right before the earliest batch that waits to be counted or else the present, all is counted but
   * batches that were being committed then.
   */
  overview(account: number, { days }: { days: number }): Promise<Overview> {
    return this.#ledger.attempt(async () => {
      const { pool, clock } = this.#ledger.database;
      const { firstDay, firstHour } = overviewStart(clock.latest, days);
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
      return overviewOf(totalsOf(daily, expiries), { now, asOf: Math.min(asOf, now) }, days);
    });
  }
}
