// The ledger's time on PostgreSQL: the database's clock, which all processes share, and never earlier than what this
// process has seen or what any process has kept.

import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import { exactInteger, prepared, type Query, type TextRow } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** SQL for the database's clock, in milliseconds since 1970. */
const DATABASE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export class DatabaseClock {
  /** SQL for the time of what is being done. */
  readonly sql: string;
  /** Asks for it by itself: Citus takes no clock within a statement that writes. */
  readonly query: Query;
  #latest: Instant = 0;

  /** @param now SQL for another clock than the database's, for tests */
  constructor(now: string = DATABASE_NOW) {
    this.sql = `least(${now}, ${LAST_INSTANT})`;
    this.query = prepared('now', `SELECT ${this.sql}`)([]);
  }

  /** The latest instant that this process has given out or seen. */
  get latest(): Instant {
    return this.#latest;
  }

  /** The database's time, which is not acted on: `latest` stays as it is. */
  async peek(pool: ConnectionPool): Promise<Instant> {
    return this.read(await pool.rows(this.query));
  }

  /** @param rows what `query` returned */
  read(rows: readonly TextRow[]): Instant {
    return exactInteger(rows[0]?.[0]);
  }

  /** Moves up to `instant`, unless it is there already. */
  notBefore(instant: Instant): Instant {
    this.#latest = Math.max(this.#latest, Math.min(instant, LAST_INSTANT));
    return this.#latest;
  }
}
