// The ledger's time on PostgreSQL: the database's clock, which all processes share. The time is never before an instant
// that this process has seen or that any process has stored.

import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import { exactInteger, prepared, type Query, type TextRow } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** SQL for the database's clock, in milliseconds since 1970. */
const DATABASE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** Most steps are answered within this time after they are sent. */
const SOON_MS = 500;

export class DatabaseClock {
  /** SQL for the current time. */
  readonly sql: string;
  /** A query for the current time alone, since Citus accepts no clock within a statement that writes. */
  readonly query: Query;
  #latest: Instant = 0;
  /** When `latest` was last advanced, by `performance.now`. */
  #advancedAtMs = performance.now();

  /** @param now SQL that replaces the database's clock, for tests */
  constructor(now: string = DATABASE_NOW) {
    this.sql = `least(${now}, ${LAST_INSTANT})`;
    this.query = prepared('now', `SELECT ${this.sql}`)([]);
  }

  /** The latest instant that this process has issued or seen. */
  get latest(): Instant {
    return this.#latest;
  }

  /** An instant slightly in the future: most statements that are sent now are answered before it. */
  get soon(): Instant {
    return Math.min(this.#latest + Math.ceil(performance.now() - this.#advancedAtMs) + SOON_MS, LAST_INSTANT);
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
    const reached = Math.min(instant, LAST_INSTANT);
    if (reached > this.#latest) {
      this.#latest = reached;
      this.#advancedAtMs = performance.now();
    }
    return this.#latest;
  }
}
