// Reads the data that the console shows, always from the primary.

import { transactionOf } from '../../../ledger/posting.ts';
import {
  type AccountTransaction,
  assertLimit,
  type ConsoleStore,
  laterFirst,
  type Overview,
  type OverviewRequest,
  overviewOf,
  overviewStart,
} from '../../console-store.ts';
import { type EndUserPage, type ListedEndUser, type ListRequest, listQuery, pageOf } from '../../end-user-lists.ts';
import type { EndUserCounts } from '../../end-user-summaries.ts';
import type { Consumer } from '../journal/feed.ts';
import { DAILY_TOTALS, EXPIRY_TOTALS, totalsOf } from '../journal/totals.ts';
import { exactInteger, type Query, sql, type TextRow } from '../pool/connection.ts';
import { COMMIT } from '../pool/transactions.ts';
import { latestQuery, transactionsIn } from './history-pages.ts';
import type { PostgresLedgerStore } from './ledger-store.ts';

/**
 * Selects the instant of the earliest batch that a consumer has not processed yet. Read this instant before the totals
 * or summaries. They then include every posting with an earlier instant, and possibly some later postings.
 */
function earliestWaiting(consumer: Consumer): Query {
  return sql(
    `SELECT min((SELECT min(f.at) FROM scrip.feed f WHERE f.bucket = c.bucket AND f.consumer = c.consumer))
     FROM scrip.feed_consumers c WHERE c.consumer = $1`,
    [consumer],
  );
}

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
      const [before, waiting, due, found] = await pool.send([
        clock.query,
        earliestWaiting('events'),
        sql('SELECT min(due_at) FROM scrip.end_user_summaries'),
        ...(query === null ? [] : [sql(list, [account, ...query.values, request.limit + 1])]),
      ]);
      const now = clock.read(before?.rows ?? []);
      const earliest = [waiting, due].map((each) => each?.rows[0]?.[0] ?? null).filter((at) => at !== null);
      const asOf = Math.min(now, ...earliest.map((at) => exactInteger(at) - 1));
      return { asOf, ...pageOf((found?.rows ?? []).map(listedOf), request) };
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
      const latest = endUsers.map((endUser) => latestQuery({ account, endUser }));
      const results = latest.length === 0 ? [] : await pool.send(latest);
      return endUsers
        .flatMap((endUser, index) => {
          const [postings] = transactionsIn(results[index]?.rows ?? []);
          return postings === undefined ? [] : [{ ...transactionOf(postings), postings, endUser }];
        })
        .sort(laterFirst);
    });
  }

  /**
   * The totals include everything up to `asOf`, except for batches that were being committed during the read. `asOf` is
   * one millisecond before the earliest batch in the feed, or the current time if the feed is empty. All totals are
   * from one snapshot: otherwise, totals of different kinds could include different batches.
   */
  overview(account: number, request: OverviewRequest): Promise<Overview> {
    return this.#ledger.attempt(async () => {
      const { pool, clock, placement } = this.#ledger.database;
      const { firstDay, firstHour } = overviewStart(clock.latest, request.days);
      const begin = placement.beginSnapshot;
      const results = await pool.send([
        ...begin,
        clock.query,
        earliestWaiting('totals'),
        sql(`${DAILY_TOTALS} WHERE account = $1 AND day >= $2`, [account, firstDay]),
        sql(`${EXPIRY_TOTALS} WHERE account = $1 AND hour >= $2`, [account, firstHour]),
        clock.query,
        COMMIT,
      ]);
      const read = results.slice(begin.length).map(({ rows }) => rows);
      const [before = [], waiting = [], daily = [], expiries = [], after = []] = read;
      const earliest = waiting[0]?.[0] ?? null;
      const now = clock.notBefore(clock.read(after));
      const asOf = earliest === null ? clock.read(before) : exactInteger(earliest) - 1;
      return overviewOf(totalsOf(daily, expiries), { now, asOf: Math.min(asOf, now) }, request);
    });
  }
}

function listedOf([endUser, balance, expiresAt, latestActivity]: TextRow): ListedEndUser {
  return {
    endUser: endUser as string,
    balance: exactInteger(balance),
    expiresAt: expiresAt === null ? null : exactInteger(expiresAt),
    latestActivity: exactInteger(latestActivity),
  };
}
