// Pools of connections to PostgreSQL: for serving, and for the commands of an operator.

import pg from 'pg';
import { Connection, type ConnectionOptions, type Query, type QueryResult, type TextRow } from './connection.ts';

export interface PostgresOptions {
  readonly url: string;
  /** The number of batches that are written at the same time, each on its own connection; null for the default. */
  readonly lanes: number | null;
  /**
   * Whether statements are prepared on the server. If they are, a pooler in transaction mode must track prepared
   * statements.
   */
  readonly prepared: boolean;
  /** Whether Citus distributes the tables; null to detect it. */
  readonly citus: boolean | null;
  /** The number of shards of a new ledger, if Citus distributes the tables. */
  readonly shards: number;
  /** Whether to open a database that may lose confirmed writes because of its settings. */
  readonly acceptUnsafe: boolean;
  /**
   * True if the ledger must have a test clock, false if it must not have one; null or absent if either is accepted. A
   * new ledger has a test clock only if this is true.
   */
  readonly testClock?: boolean | null;
  /** SQL that replaces the database's clock, for tests. */
  readonly now?: string;
}

/** A server that takes longer to connect or to answer counts as down. */
const CONNECT_TIMEOUT_MS = 2_000;
export const ANSWER_TIMEOUT_MS = 5_000;

/** A copy detects by this `application_name` that another process uses the ledger. */
export const APPLICATION_NAME = 'scrip';

/** A pool for serving. Steps have a timeout, since a client waits for each response. */
export function servingPool({ url, prepared }: PostgresOptions, max: number): ConnectionPool {
  const config = { connectionString: url, max, application_name: APPLICATION_NAME };
  return new ConnectionPool(config, { isPrepared: prepared, timeoutMs: ANSWER_TIMEOUT_MS });
}

/** A pool for operator commands, which have no timeout. */
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

  /** If `work` fails, closes the connection, which rolls back an open transaction. */
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
  // The server may close a connection at any time; the next statement then fails.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
