// Opens the store that the service uses, as selected by DATABASE_URL.
//
// The SQLite store is imported statically, so that its writer thread starts while the rest of the service loads.

import type { Database } from './config.ts';
import type { AccountDatabase } from './store/account-database.ts';
import { openSqliteStore } from './store/sqlite/sqlite-store.ts';
import type { Stores } from './store/stores.ts';

/**
 * Opens the store for serving. Only one process at a time can serve an SQLite file.
 *
 * @param testClock if true, the ledger must have a test clock, and a new ledger gets one; if false, the ledger must not
 * have one
 * @param wall returns the time in milliseconds since 1970, instead of the machine's clock; for tests, on SQLite only
 * @throws CannotOpen
 */
export async function openStores(database: Database, testClock = false, wall?: () => number): Promise<Stores> {
  if (database.kind === 'file') return openSqliteStore(database.path, wall, { testClock });
  const { openPostgresStore } = await import('./store/postgres/postgres-store.ts');
  return openPostgresStore({ ...database, testClock });
}

/**
 * The account database, opened on first use. The console and the webhooks share it because, on SQLite, two connections
 * in one thread would wait for each other's transactions.
 */
export class SharedAccountDatabase {
  readonly #database: Database;
  #opened: Promise<AccountDatabase> | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  open(): Promise<AccountDatabase> {
    this.#opened ??= openAccountDatabase(this.#database).catch((error) => {
      this.#opened = null;
      throw error;
    });
    return this.#opened;
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => null);
    await opened?.[Symbol.asyncDispose]();
  }
}

/** Opens connections to the account tables of an existing ledger. */
export async function openAccountDatabase(database: Database): Promise<AccountDatabase> {
  if (database.kind === 'file') {
    const { openSqliteAccountDatabase } = await import('./store/sqlite/reads/account-database.ts');
    return openSqliteAccountDatabase(database.path);
  }
  const { openPostgresAccountDatabase } = await import('./store/postgres/reads/account-database.ts');
  return openPostgresAccountDatabase(database.url);
}
