// The console's connections to PostgreSQL. Tables are named with their schema, since behind a pooler in transaction mode
// a search path does not stay with its connection.

import { Kysely, PostgresDialect, sql } from 'kysely';
import type { ConsoleDatabase, ConsoleTables } from '../console-database.ts';
import { openPool } from './connection.ts';

const CONNECTIONS = 3;

/** @param url of a ledger that is open already, and so has the schema of this version */
export function openPostgresConsoleDatabase(url: string): ConsoleDatabase {
  const unqualified = new Kysely<ConsoleTables>({ dialect: new PostgresDialect({ pool: openPool(url, CONNECTIONS) }) });
  const queries = unqualified.withSchema('scrip');
  return {
    type: 'postgres',
    queries,
    alone: (work) =>
      queries.transaction().execute(async (transaction) => {
        // It also keeps the numbers of accounts from being given out twice.
        await sql`LOCK TABLE scrip.accounts IN EXCLUSIVE MODE`.execute(transaction);
        return work(transaction);
      }),
    close: () => unqualified.destroy(),
  };
}
