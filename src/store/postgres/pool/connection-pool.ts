// Connection pools for PostgreSQL: one with timeouts, for `scrip serve` and `scrip import`, and one without timeouts,
// for the other operator commands.

import assert from 'node:assert/strict';
import pg from 'pg';
import { StoreFault } from '../../store-fault.ts';
import { Connection, type ConnectionOptions, type Query, type QueryResult, type TextRow } from './connection.ts';

export interface PostgresOptions {
  readonly url: string;
  /** The number of lanes, which write batches concurrently; null for the default. */
  readonly lanes: number | null;
  /**
   * Whether statements are prepared on the server. If so, a connection pooler in transaction mode must track prepared
   * statements.
   */
  readonly prepared: boolean;
  /** Whether Citus distributes the tables; null to check whether the extension is installed. */
  readonly citus: boolean | null;
  /** The number of shards over which Citus distributes the tables of a new ledger. */
  readonly shards: number;
  /** Whether to open a database even if its settings allow confirmed writes to be lost. */
  readonly acceptUnsafe: boolean;
  /**
   * True if the ledger must have a test clock, false if it must not have one, null if either is accepted. The default
   * is false in `openPostgresStore`, and null everywhere else. A new ledger gets a test clock only if `testClock` is
   * true.
   */
  readonly testClock?: boolean | null;
  /** SQL that replaces the database's clock, for tests. */
  readonly now?: string;
}

/** A server that takes longer than this to accept a connection counts as down. */
const CONNECT_TIMEOUT_MS = 2_000;
/** A server that takes longer than this to answer counts as down. */
export const ANSWER_TIMEOUT_MS = 5_000;

/** `scrip copy` looks for connections with this `application_name`, to detect processes that use the ledger. */
export const APPLICATION_NAME = 'scrip';

/** Removes `application_name` from a URL, because a name in the URL would replace Scrip's own. */
function withoutName(url: string): string {
  return url.replace(/(?<=[?&])application_name=[^&#]*&?/gi, '');
}

/** The configuration of a pool for `scrip serve`. */
export function servingConfig(url: string, max: number): pg.PoolConfig {
  return { connectionString: withoutName(url), max, application_name: APPLICATION_NAME, Client: PrimaryClient };
}

/**
 * A pool for `scrip serve` and `scrip import`. Each step (see `Connection`) has a timeout, because clients can be
 * waiting for its answer.
 */
export function servingPool({ url, prepared }: PostgresOptions, max: number): ConnectionPool {
  return new ConnectionPool(servingConfig(url, max), { isPrepared: prepared, timeoutMs: ANSWER_TIMEOUT_MS });
}

/** A pool for all operator commands except `scrip import`. Steps have no timeout. */
export function toolsPool({ url }: PostgresOptions, max: number, applicationName: string): ConnectionPool {
  const config = { connectionString: withoutName(url), max, application_name: applicationName };
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

  /** Runs `work` on a connection. If `work` fails, closes the connection, which rolls back any open transaction. */
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

/**
 * Closes the socket if connecting fails. If the driver itself gives up, for example because the server requests a
 * password and none is set, it leaves the socket open. Scrip would then exit only after the server's timeout.
 */
class ClosingClient extends pg.Client {
  /** Why Scrip must not use the connection, although the server accepts it; null if it may be used. */
  protected refusal: Error | null = null;

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): unknown {
    assert(callback, 'the pool passes a callback');
    return super.connect((failure: Error | null) => {
      const error = failure ?? this.refusal;
      if (error) void this.end();
      callback(error);
    });
  }
}

/**
 * Refuses a standby, because its reads can be stale. PostgreSQL 14 and later report during the connection's start whether
 * they are a standby.
 */
class PrimaryClient extends ClosingClient {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.connection.on('parameterStatus', ({ parameterName: name, parameterValue: value }: Parameter) => {
      if (name !== 'in_hot_standby') return;
      this.refusal = value === 'on' ? new StoreFault('StoreUnavailable', 'PostgreSQL is a read-only standby') : null;
    });
  }
}

/** A setting that the server reports, as parsed by the driver. */
interface Parameter {
  readonly parameterName: string;
  readonly parameterValue: string;
}

export function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    Client: ClosingClient,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    ...config,
  });
  // Ignore connection errors here, because the next statement on the connection fails anyway.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
