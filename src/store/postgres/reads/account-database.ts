// PostgreSQL connections for the console, the webhooks and the thresholds. Table names include the schema, because a
// connection pooler in transaction mode does not keep the search path.

import { Kysely, PostgresDialect, type PostgresPoolClient, sql } from 'kysely';
import pg from 'pg';
import type { AccountDatabase, AccountTables } from '../../account-database.ts';
import { exactInteger } from '../pool/connection.ts';
import { ANSWER_TIMEOUT_MS, openPool, servingConfig } from '../pool/connection-pool.ts';

const CONNECTIONS = 3;

const INT8 = 20;

const INTEGERS = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? exactInteger : pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

/** @param url the URL of a ledger that is already open */
export function openPostgresAccountDatabase(url: string): AccountDatabase {
  const opened = openPool({ ...servingConfig(url, CONNECTIONS), query_timeout: ANSWER_TIMEOUT_MS, types: INTEGERS });
  const pool = { connect: async () => closedIfUnanswered(await opened.connect()), end: () => opened.end() };
  const unqualified = new Kysely<AccountTables>({ dialect: new PostgresDialect({ pool }) });
  const queries = unqualified.withSchema('scrip');
  return {
    queries,
    // Citus refuses `clock_timestamp` in an UPDATE, because this function is volatile.
    clock: '(extract(epoch FROM statement_timestamp()) * 1000)::bigint',
    alone: (work) =>
      queries
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (transaction) => {
          // The lock makes the transactions of `alone` run one at a time. It also prevents two accounts from getting
          // the same account number.
          await sql`LOCK TABLE scrip.accounts IN EXCLUSIVE MODE`.execute(transaction);
          return work(transaction);
        }),
    relaxed: (work) =>
      queries
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (transaction) => {
          await sql`SET LOCAL synchronous_commit = off`.execute(transaction);
          return work(transaction);
        }),
    [Symbol.asyncDispose]: () => unqualified.destroy(),
  };
}

/**
 * Closes the connection after its use if a query got no answer. The driver would return the connection to the pool, even
 * if it is half open, or if the server begins a transaction after the timeout.
 */
function closedIfUnanswered(client: pg.PoolClient): PostgresPoolClient {
  let isSound = true;
  const query = (text: string, values?: unknown[]): Promise<unknown> =>
    client.query(text, values).catch((error) => {
      isSound &&= error instanceof pg.DatabaseError;
      throw error;
    });
  return { query: query as PostgresPoolClient['query'], release: () => client.release(!isSound) };
}
