// Opens the store that the service uses, as selected by DATABASE_URL. Only this file and open-tools.ts import the
// SQLite and PostgreSQL stores.
//
// SQLite, the default, is imported statically, so that its writer thread starts while the rest of the service loads.
// The driver of PostgreSQL and the database library of the console are imported only when they are needed.

import type { Database } from './config.ts';
import type { ConsoleDatabase } from './store/console-database.ts';
import { openSqliteStore } from './store/sqlite/sqlite-store.ts';
import type { Stores } from './store/stores.ts';

/**
 * Opens the store for serving. No other process may serve the same SQLite file.
 *
 * @param testClock whether an existing ledger must have a test clock, and a new ledger gets one
 * @param wall replaces the machine's clock, in milliseconds since 1970; for tests, on SQLite only
 * @throws CannotOpen
 */
export async function openStores(database: Database, testClock = false, wall?: () => number): Promise<Stores> {
  if (database.kind === 'file') return openSqliteStore(database.path, wall, { testClock });
  const { openPostgresStore } = await import('./store/postgres/postgres-store.ts');
  return openPostgresStore({ ...database, testClock });
}

/** Opens the console's own connections to a ledger that already exists. */
export async function openConsoleDatabase(database: Database): Promise<ConsoleDatabase> {
  if (database.kind === 'file') {
    const { openSqliteConsoleDatabase } = await import('./store/sqlite/reads/console-database.ts');
    return openSqliteConsoleDatabase(database.path);
  }
  const { openPostgresConsoleDatabase } = await import('./store/postgres/reads/console-database.ts');
  return openPostgresConsoleDatabase(database.url);
}
