// A PostgreSQL ledger whose clock a test moves by hand: the store asks a table for the time, and the test's time is
// written there before each call. The store's own tick reads no clock, so it does not disturb that.

import pg from 'pg';
import type { PostgresOptions } from '../../src/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';

export const OPTIONS: Omit<PostgresOptions, 'url'> = { lanes: 4, prepared: true, citus: null, acceptUnsafe: true };

const TEST_NOW = '(SELECT at FROM public.test_clock)';

/** @param wall milliseconds since 1970 */
export async function openOnMovedClock(
  url: string,
  wall: () => number,
  options: Partial<PostgresOptions> = {},
): Promise<Store> {
  const clock = await TestClock.open(url, wall);
  const store = await clock.openStore(url, options);
  const beforehand = clock.beforehand(store);
  const onKeys = clock.beforehand(store.apiKeys);
  const onReads = clock.beforehand(store.accountReads);
  return {
    lanes: store.lanes,
    write: beforehand('write'),
    cycles: beforehand('cycles'),
    transactions: beforehand('transactions'),
    renewalsDue: beforehand('renewalsDue'),
    deleteExpiredRecords: beforehand('deleteExpiredRecords'),
    audit: beforehand('audit'),
    apiKeys: {
      create: onKeys('create'),
      list: onKeys('list'),
      revoke: onKeys('revoke'),
      find: onKeys('find'),
      createFor: onKeys('createFor'),
      noteUses: onKeys('noteUses'),
    },
    accountReads: {
      nameOf: onReads('nameOf'),
      endUsers: onReads('endUsers'),
      recent: onReads('recent'),
      history: onReads('history'),
      cyclesSince: onReads('cyclesSince'),
      overview: onReads('overview'),
    },
    prove: beforehand('prove'),
    addChains: beforehand('addChains'),
    addUpTotals: beforehand('addUpTotals'),
    trouble: () => store.trouble(),
    close: async () => {
      await store.close();
      await clock.close();
    },
  };
}

class TestClock {
  readonly #client: pg.Client;
  readonly #wall: () => number;
  #latest = Number.NaN;
  #shown: Promise<unknown> = Promise.resolve();

  static async open(url: string, wall: () => number): Promise<TestClock> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('CREATE TABLE IF NOT EXISTS public.test_clock (at bigint NOT NULL)');
    await client.query('INSERT INTO public.test_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM public.test_clock)');
    return new TestClock(client, wall);
  }

  private constructor(client: pg.Client, wall: () => number) {
    this.#client = client;
    this.#wall = wall;
  }

  async openStore(url: string, options: Partial<PostgresOptions>): Promise<Store> {
    await this.#show();
    return openPostgresStore({ ...OPTIONS, ...options, url, now: TEST_NOW });
  }

  /** The methods of `target`, each called after the test's time has been written down. */
  beforehand<Target extends object>(target: Target) {
    type Method = (...args: never[]) => Promise<unknown>;
    return <Name extends keyof Target>(name: Name): Target[Name] => {
      const method = (target[name] as Method).bind(target);
      const timed: Method = async (...args) => {
        await this.#show();
        return method(...args);
      };
      return timed as Target[Name];
    };
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async #show(): Promise<void> {
    const wall = this.#wall();
    if (wall !== this.#latest) {
      this.#latest = wall;
      const show = () => this.#client.query('UPDATE public.test_clock SET at = $1', [wall]);
      this.#shown = this.#shown.then(show);
    }
    await this.#shown;
  }
}
