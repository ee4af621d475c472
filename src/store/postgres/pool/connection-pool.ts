// Pools of connections to PostgreSQL: for serving, and for the commands of an operator.

import pg from 'pg';
import { Connection, type ConnectionOptions, type Query, type QueryResult, type TextRow } from './connection.ts';

export interface PostgresOptions {
  readonly url: string;
  /** Batches written at the same time, each on a connection of its own. */
  readonly lanes: number;
  /** Whether statements are prepared on the server; behind a pooler in transaction mode only if it keeps track of them. */
  readonly prepared: boolean;
  /** Whether the tables are distributed over machines by Citus; null to detect it. */
  readonly citus: boolean | null;
  /** Whether to open a database whose settings may lose what it has confirmed. */
  readonly acceptUnsafe: boolean;
  /** SQL for another clock than the database's, for tests. */
  readonly now?: string;
}

/** A server that takes longer counts as one that is down. */
const CONNECT_TIMEOUT_MS = 2_000;
export const ANSWER_TIMEOUT_MS = 5_000;

/** By which a copy knows that another process uses a ledger. */
export const APPLICATION_NAME = 'scrip';

/** For serving: a client waits for each answer. @param max connections */
export function servingPool({ url, prepared }: PostgresOptions, max: number): ConnectionPool {
  const config = { connectionString: url, max, application_name: APPLICATION_NAME };
  return new ConnectionPool(config, { isPrepared: prepared, timeoutMs: ANSWER_TIMEOUT_MS });
}

/** For commands of an operator, which take as long as they take. */
export function toolsPool({ url }: PostgresOptions, max: number, applicationName: string): ConnectionPool {
  const config = { connectionString: url, max, application_name: applicationName };
  return new ConnectionPool(config, { isPrepared: false, timeoutMs: 0 });
}

export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #connections = new WeakMap<pg.PoolClient, Connection>();

  constructor(config: pg.PoolConfig, options: ConnectionOptions) {
    this.#pool = openPool(config);
    this.#pool.on('connect', (client) => this.#connections.set(client, new Connection(client, options)));
  }

  async connect(): Promise<Connection> {
    return this.#connections.get(await this.#pool.connect()) as Connection;
  }

  /** Runs `work` on a connection. It is closed if that fails, which rolls back what is not committed. */
  async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connection = await this.connect();
    let isSound = false;
    try {
      const result = await work(connection);
      isSound = true;
      return result;
    } finally {
      connection.release(isSound);
    }
  }

  send(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    return this.use((connection) => connection.send(queries));
  }

  rows(query: Query): Promise<readonly TextRow[]> {
    return this.use((connection) => connection.rows(query));
  }

  end(): Promise<void> {
    return this.#pool.end();
  }
}

export function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true, ...config });
  // The server may end any connection at any time; its user notices at the next statement.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
