// PostgreSQL connections for the console, the webhooks and the thresholds. Table names include the schema, because a
// connection pooler in transaction mode does not keep the search path.

import { Kysely, PostgresDialect, type PostgresPoolClient, sql } from 'kysely';
import pg from 'pg';
import type { AccountDatabase, AccountQueries, AccountTables } from '../../account-database.ts';
import { exactInteger } from '../pool/connection.ts';
import { ANSWER_TIMEOUT_MS, openPool, servingConfig } from '../pool/connection-pool.ts';
import { isWorthRetrying } from '../pool/postgres-error.ts';
import { LOCKING_TIMEOUTS, setLocal } from '../pool/transactions.ts';

const CONNECTIONS = 3;
const TRIES_MAX = 5;

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
    // The lock makes the transactions of `alone` run one at a time. It also prevents two accounts from getting the same
    // account number.
    alone: (work) => transact(queries, 'LOCK TABLE scrip.accounts IN EXCLUSIVE MODE', work),
    relaxed: (work) => transact(queries, 'SET LOCAL synchronous_commit = off', work),
    [Symbol.asyncDispose]: () => unqualified.destroy(),
  };
}

/**
 * Runs the transaction again after a deadlock. On Citus, even two transactions that write different rows can deadlock:
 * a write to a reference table also locks the tables that it references, in an order that depends on the table.
 *
 * @param first the first statement of the transaction
 */
async function transact<Result>(
  queries: AccountQueries,
  first: string,
  work: (queries: AccountQueries) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await queries
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (transaction) => {
          for (const text of [...setLocal(LOCKING_TIMEOUTS).map((query) => query.text), first])
            await sql.raw(text).execute(transaction);
          return work(transaction);
        });
    } catch (error) {
      if (attempt === TRIES_MAX || !isWorthRetrying(error)) throw error;
    }
  }
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
