// Opens the ledger in a database: checks the server's settings, and migrates the schema.

import { ACCOUNT_TABLES, accountSchema } from '../../account-schema.ts';
import { CannotOpen } from '../../store-fault.ts';
import { testClockRefusal } from '../../test-clock.ts';
import { distribute, readPlacement } from '../citus/citus.ts';
import { type Placement, SINGLE_DATABASE } from '../citus/placement.ts';
import { Reach } from '../citus/reach.ts';
import { type Connection, sql } from '../pool/connection.ts';
import { type ConnectionPool, type PostgresOptions, servingPool } from '../pool/connection-pool.ts';
import { DatabaseClock } from '../pool/database-clock.ts';
import { READ_COMMITTED } from '../pool/transactions.ts';
import { END_USER_TABLES, ledgerSchema } from './schema.ts';

/** A released migration never changes. The scripts contain no schema names, because `migrate` sets the search path. */
const MIGRATIONS: readonly string[] = [`${accountSchema({ instant: 'bigint', options: '' })}${ledgerSchema}`];

/** Databases with a lower schema version were created before the first release. */
const SCHEMA_FIRST = 15;

const SCHEMA_LATEST = SCHEMA_FIRST + MIGRATIONS.length - 1;

/** The key of the advisory lock for migrations: "Scrp" in ASCII. Scrip takes no other advisory lock. */
export const MIGRATION_LOCK = 0x53637270;

type Server = Connection | ConnectionPool;

export interface LedgerDatabase {
  readonly pool: ConnectionPool;
  readonly clock: DatabaseClock;
  readonly placement: Placement;
  readonly reach: Reach;
}

export interface OpeningOptions extends PostgresOptions {
  readonly create: boolean;
  /** Whether to open an unfinished copy, in which part of the ledger is missing; false by default. */
  readonly mayBeUnfinished?: boolean;
}

/**
 * Creates or migrates the ledger if needed, and then calls `open`. Closes the pool after any error.
 *
 * @throws CannotOpen
 */
export async function openLedger<Opened>(
  pool: ConnectionPool,
  options: OpeningOptions,
  open: (database: LedgerDatabase) => Promise<Opened>,
): Promise<Opened> {
  const { acceptUnsafe, citus, shards, create, mayBeUnfinished = false, testClock = null, now } = options;
  try {
    if (!acceptUnsafe) await refuseUnsafe(pool);
    await refuseUnusable(pool);
    const current = await schemaOf(pool);
    if (current === 0 && !create)
      throw new CannotOpen(
        'There is no ledger in the database; check DATABASE_URL, or run `scrip migrate` to create a ledger.',
      );
    const isCitus = citus ?? (await pool.rows(sql(`SELECT 1 FROM pg_extension WHERE extname = 'citus'`))).length > 0;
    if (current < SCHEMA_LATEST) await pool.use((connection) => migrate(connection, isCitus ? shards : null));
    const placement = isCitus ? await readPlacement(pool) : SINGLE_DATABASE;
    if (testClock) await addTestClock(pool);
    const isTest = (await pool.rows(sql('SELECT 1 FROM scrip.test_clock'))).length > 0;
    const refusal = testClock === null ? null : testClockRefusal('The ledger in this database', isTest, testClock);
    if (refusal !== null) throw new CannotOpen(refusal);
    if (!mayBeUnfinished) await refuseUnfinishedCopy(pool);
    const reach = new Reach(servingPool(options, placement.parts.length), placement);
    return await open({ pool, clock: new DatabaseClock(isTest, now), placement, reach });
  } catch (error) {
    await pool.end();
    if (error instanceof CannotOpen) throw error;
    // PostgreSQL reports a severity with each of its errors, so it is running.
    const advice = 'severity' in (error as object) ? '' : ', and check that PostgreSQL is running';
    throw new CannotOpen(
      `Cannot open the ledger in PostgreSQL (${(error as Error).message}); check DATABASE_URL${advice}.`,
    );
  }
}

/** Adds a test clock to a ledger that no server has used yet, such as a ledger that `scrip key create` has created. */
async function addTestClock(pool: ConnectionPool): Promise<void> {
  for (const used of ['SELECT 1 FROM scrip.clock WHERE at > 0', 'SELECT 1 FROM scrip.postings LIMIT 1'])
    if ((await pool.rows(sql(used))).length > 0) return;
  await pool.rows(sql('INSERT INTO scrip.test_clock VALUES (true) ON CONFLICT DO NOTHING'));
}

/** Refuses a server that can confirm writes before they are on stable storage. */
async function refuseUnsafe(pool: ConnectionPool): Promise<void> {
  const unsafe = `SELECT name FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'`;
  const rows = await pool.rows(sql(unsafe));
  if (rows.length === 0) return;
  const settings = rows.map(([name]) => `${name} = off`).join(' and ');
  throw new CannotOpen(
    `PostgreSQL runs with ${settings}, so a crash can lose confirmed writes; change PostgreSQL's configuration, or accept the risk with DATABASE_ACCEPT_UNSAFE=yes.`,
  );
}

/**
 * Refuses a database whose encoding cannot represent every note, that would store the text `NULL` instead of a null, or
 * that hides the warning about a COMMIT that no standby has confirmed.
 */
async function refuseUnusable(pool: ConnectionPool): Promise<void> {
  const settings = ['server_encoding', 'array_nulls', 'client_min_messages'];
  const [[encoding, arrayNulls, messages] = []] = await pool.rows(
    sql(`SELECT ${settings.map((name) => `current_setting('${name}')`).join(', ')}`),
  );
  if (encoding !== 'UTF8')
    throw new CannotOpen(
      `The database has the encoding ${encoding}; create a database with ENCODING 'UTF8', and point DATABASE_URL at it.`,
    );
  if (arrayNulls !== 'on')
    throw new CannotOpen(
      'PostgreSQL runs with array_nulls = off; set array_nulls to on for the database and the role.',
    );
  if (messages === 'error')
    throw new CannotOpen(
      'PostgreSQL runs with client_min_messages = error; set client_min_messages to warning for the database and the role.',
    );
}

async function refuseUnfinishedCopy(pool: ConnectionPool): Promise<void> {
  if (!(await hasUnfinishedCopy(pool))) return;
  throw new CannotOpen(
    'The database contains an unfinished copy; run the same `scrip copy` command again to finish the copy, or drop the `scrip` schema if `scrip demo` created it.',
  );
}

export function hasUnfinishedCopy(server: Server): Promise<boolean> {
  return hasTable(server, 'copying');
}

/** @param shards the number of shards over which to distribute the tables; null for a single database */
async function migrate(connection: Connection, shards: number | null): Promise<void> {
  await connection.script(`${READ_COMMITTED}; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  // `CREATE SCHEMA IF NOT EXISTS` would require a privilege on the database even if the schema exists.
  const hasSchema = (await connection.rows(sql(`SELECT 1 FROM pg_namespace WHERE nspname = 'scrip'`))).length > 0;
  await connection.script(`
    ${hasSchema ? '' : 'CREATE SCHEMA scrip;'} SET LOCAL search_path TO scrip, public;
    CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL)`);
  // Read the version again: another process might have migrated the ledger while this process waited for the lock.
  const current = await schemaOf(connection);
  for (const [index, script] of MIGRATIONS.entries()) {
    const number = SCHEMA_FIRST + index;
    if (number > current) await connection.script(`${script} INSERT INTO migrations VALUES (${number}, now())`);
  }
  const tables = { spread: END_USER_TABLES, whole: [...ACCOUNT_TABLES, 'test_clock', 'event_log', 'migrations'] };
  if (shards !== null) await distribute(connection, tables, shards);
  await connection.script('COMMIT');
}

/**
 * The schema version; 0 if there is no ledger.
 *
 * @throws CannotOpen if this version of Scrip can neither use nor migrate the schema
 */
async function schemaOf(server: Server): Promise<number> {
  if (!(await hasTable(server, 'migrations'))) return 0;
  const [row] = await server.rows(sql('SELECT coalesce(max(number), 0) FROM scrip.migrations'));
  const schema = Number(row?.[0]);
  if (schema > SCHEMA_LATEST)
    throw new CannotOpen(
      `The ledger in this database was written by a newer version of Scrip (schema ${schema}; this version supports up to ${SCHEMA_LATEST}); use the newer version, or point DATABASE_URL elsewhere.`,
    );
  if (schema > 0 && schema < SCHEMA_FIRST)
    throw new CannotOpen(
      `The ledger in this database was written before the first release of Scrip (schema ${schema}) and cannot be read; point DATABASE_URL at another database.`,
    );
  return schema;
}

async function hasTable(server: Server, table: string): Promise<boolean> {
  const rows = await server.rows(sql('SELECT 1 WHERE to_regclass($1) IS NOT NULL', [`scrip.${table}`]));
  return rows.length > 0;
}
