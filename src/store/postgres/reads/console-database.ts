// The console's connections to PostgreSQL. Table names include the schema, since a pooler in transaction mode does not
// preserve the search path.

import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import type { ConsoleDatabase, ConsoleTables } from '../../console-database.ts';
import { exactInteger } from '../pool/connection.ts';
import { ANSWER_TIMEOUT_MS, APPLICATION_NAME, openPool } from '../pool/connection-pool.ts';

const CONNECTIONS = 3;

const INT8 = 20;

const INTEGERS = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? exactInteger : pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

/** @param url the URL of a ledger that is already open and therefore has the schema of this version */
export function openPostgresConsoleDatabase(url: string): ConsoleDatabase {
  const pool = openPool({
    connectionString: url,
    max: CONNECTIONS,
    application_name: APPLICATION_NAME,
    query_timeout: ANSWER_TIMEOUT_MS,
    types: INTEGERS,
  });
  const unqualified = new Kysely<ConsoleTables>({ dialect: new PostgresDialect({ pool }) });
  const queries = unqualified.withSchema('scrip');
  return {
    queries,
    alone: (work) =>
      queries.transaction().execute(async (transaction) => {
        // The lock also prevents an account number from being assigned twice.
        await sql`LOCK TABLE scrip.accounts IN EXCLUSIVE MODE`.execute(transaction);
        return work(transaction);
      }),
    [Symbol.asyncDispose]: () => unqualified.destroy(),
  };
}
