// The event settings of an account: the thresholds of `balance.low`, and the number of days between `credits.expiring`
// and the expiry. A changed setting applies to the events that are derived afterwards.

import assert from 'node:assert/strict';
import type { Instant } from '../ledger/instant.ts';
import type { AccountDatabase } from '../store/account-database.ts';
import { EXPIRING_DAYS_MAX, THRESHOLDS_MAX, type Threshold, thresholdText } from '../store/event-log.ts';

interface ListedThreshold {
  readonly account: number;
  readonly accountName: string;
  /** The threshold as text that `thresholdOf` can parse. */
  readonly below: string;
  readonly createdAt: Instant;
}

export class Thresholds {
  readonly #database: AccountDatabase;
  readonly #now: () => number;

  constructor(database: AccountDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Sorted by account, then by creation time. @param account null to list the thresholds of all accounts */
  list(account: number | null): Promise<readonly ListedThreshold[]> {
    return this.#database.queries
      .selectFrom('thresholds')
      .innerJoin('accounts', 'accounts.account', 'thresholds.account')
      .select(['thresholds.account', 'accounts.name as accountName', 'below', 'thresholds.created_at as createdAt'])
      .$if(account !== null, (query) => query.where('thresholds.account', '=', account))
      .orderBy('thresholds.account')
      .orderBy('thresholds.created_at')
      .orderBy('below')
      .execute();
  }

  /** @returns `too-many` if the account already has `THRESHOLDS_MAX` thresholds */
  add(account: number, threshold: Threshold): Promise<'added' | 'exists' | 'too-many'> {
    const below = thresholdText(threshold);
    return this.#database.alone(async (queries) => {
      const rows = await queries.selectFrom('thresholds').select('below').where('account', '=', account).execute();
      if (rows.some((row) => row.below === below)) return 'exists';
      if (rows.length >= THRESHOLDS_MAX) return 'too-many';
      await queries.insertInto('thresholds').values({ account, below, created_at: this.#now() }).execute();
      return 'added';
    });
  }

  async remove(account: number, threshold: Threshold): Promise<boolean> {
    const { numDeletedRows } = await this.#database.queries
      .deleteFrom('thresholds')
      .where('account', '=', account)
      .where('below', '=', thresholdText(threshold))
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0;
  }

  async expiringDays(account: number): Promise<number> {
    const { expiring_days } = await this.#database.queries
      .selectFrom('accounts')
      .select('expiring_days')
      .where('account', '=', account)
      .executeTakeFirstOrThrow();
    return expiring_days;
  }

  async setExpiringDays(account: number, days: number): Promise<void> {
    assert(Number.isInteger(days) && days >= 1 && days <= EXPIRING_DAYS_MAX, 'the caller checks the number of days');
    await this.#database.queries
      .updateTable('accounts')
      .set({ expiring_days: days })
      .where('account', '=', account)
      .execute();
  }
}
