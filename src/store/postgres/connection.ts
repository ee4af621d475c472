// Connections to PostgreSQL: how they are opened, and what is asked of the server before it is trusted.

import type { Writable } from 'node:stream';
import pg from 'pg';
import { CannotOpen } from '../store.ts';
import { exactInteger } from './rows.ts';

export interface PostgresOptions {
  readonly url: string;
  /** Batches written at the same time, a connection each. */
  readonly lanes: number;
  /** Whether statements are prepared on the server; behind a pooler in transaction mode only if it keeps track of them. */
  readonly prepared: boolean;
  /** Whether the tables are distributed over machines by Citus; found out when null. */
  readonly citus: boolean | null;
  /** Whether a server that may lose what it has confirmed will do. */
  readonly acceptUnsafe: boolean;
  /** Whether the chains of end users are kept, for which each batch also updates a row of each of them. */
  readonly chained?: boolean;
  /** SQL for another clock than the database's, for tests. */
  readonly now?: string;
}

/** Past these, a server that does not answer is taken for one that is down. */
const CONNECT_TIMEOUT_MS = 2_000;
const QUERY_TIMEOUT_MS = 5_000;

/** By which a copy knows that others are at work on a ledger. */
export const APPLICATION_NAME = 'scrip';

/**
 * For what no promise hangs on: without waiting for a standby. While there is none, each of these would wait in the server
 * with its rows locked and a connection of its own, until no connection was left.
 */
export const BEGIN_UNPROMISED = `BEGIN; SET LOCAL synchronous_commit = local; SET LOCAL lock_timeout = '1s'`;

const INT8 = 20;

const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? exactInteger : pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

/** Integers past 2^53−1 as well, rounded: all others refuse them, and `scrip verify` says where they are. */
export const ANY_INTEGER = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

/** @param queryTimeoutMs 0 for none: a copy waits for as long as it takes */
export function openPool(
  url: string,
  max: number,
  { queryTimeoutMs = QUERY_TIMEOUT_MS, applicationName = APPLICATION_NAME } = {},
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
    // All statements of a step travel together: a step costs one round trip.
    pipeline: true,
    types,
  } as pg.PoolConfig);
  // The server may end any connection at any time; whoever uses one learns of it by its own query.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * A server that answers before its data is on stable storage makes every promise of Scrip void.
 *
 * @throws CannotOpen
 */
export async function refuseUnsafe(pool: pg.Pool, acceptUnsafe: boolean): Promise<void> {
  const { rows } = await pool.query(
    `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'`,
  );
  if (rows.length === 0 || acceptUnsafe) return;
  const settings = rows.map(({ name }) => `${name} = off`).join(' and ');
  throw new CannotOpen(
    `PostgreSQL runs with ${settings}, so it may lose what it has confirmed; set it to on, or accept the loss with DATABASE_ACCEPT_UNSAFE=yes.`,
  );
}

/**
 * Sends all statements of a step in one piece, waits for all of them, and throws what the first one to fail threw: those
 * behind it only say that the transaction is aborted, and may be heard first.
 */
export async function pipelined<Results extends readonly unknown[]>(
  client: pg.PoolClient,
  step: () => readonly [...{ [Index in keyof Results]: Promise<Results[Index]> | Results[Index] }],
): Promise<Results> {
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  // Without this each message is a system call of its own, which wakes the server: a third of the main thread's time.
  stream.cork();
  let queries: ReturnType<typeof step>;
  try {
    queries = step();
  } finally {
    stream.uncork();
  }
  await Promise.allSettled(queries);
  for (const query of queries) await query;
  return (await Promise.all(queries)) as unknown as Results;
}
