// The ledger's time on PostgreSQL: the database's clock, which all processes share, but never an instant before one
// that this process has seen or that any process has stored.

import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import { exactInteger, prepared, type Query, type TextRow } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** SQL for the database's clock, in milliseconds since 1970. */
const DATABASE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export class DatabaseClock {
  /** SQL for the current time. */
  readonly sql: string;
  /** A query for the current time alone, since Citus accepts no clock within a statement that writes. */
  readonly query: Query;
  #latest: Instant = 0;

  /** @param now SQL that replaces the database's clock, for tests */
  constructor(now: string = DATABASE_NOW) {
    this.sql = `least(${now}, ${LAST_INSTANT})`;
    this.query = prepared('now', `SELECT ${this.sql}`)([]);
  }

  /** The latest instant that this process has issued or seen. */
  get latest(): Instant {
    return this.#latest;
  }

  /** Reads the database's clock without advancing `latest`. */
  async peek(pool: ConnectionPool): Promise<Instant> {
    return this.read(await pool.rows(this.query));
  }

  /** @param rows the rows that `query` returned */
  read(rows: readonly TextRow[]): Instant {
    return exactInteger(rows[0]?.[0]);
  }

  /** Advances `latest` to `instant` unless it is already later. @returns `latest` */
  notBefore(instant: Instant): Instant {
    this.#latest = Math.max(this.#latest, Math.min(instant, LAST_INSTANT));
    return this.#latest;
  }
}
