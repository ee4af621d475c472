// The ledger's time on PostgreSQL: the database's clock, which all processes share, and never earlier than what this
// process has seen or what any process has kept.

import type { Pool, PoolClient } from 'pg';
import { type Instant, LAST_INSTANT } from '../../ledger/instant.ts';

/** SQL for the database's clock, in milliseconds since 1970. */
const DATABASE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export class DatabaseClock {
  /** SQL for the time of what is being done. */
  readonly now: string;
  #latest: Instant = 0;

  /** @param now SQL for another clock than the database's, for tests */
  constructor(now: string = DATABASE_NOW) {
    this.now = `least(${now}, ${LAST_INSTANT})`;
  }

  get latest(): Instant {
    return this.#latest;
  }

  /** The time, asked for by itself: Citus takes no clock within a statement that writes. Moves nothing up. */
  async ask(server: Pool | PoolClient): Promise<Instant> {
    const { rows } = await server.query(`SELECT ${this.now} AS now`);
    return rows[0].now;
  }

  /** Moves up to `instant`, unless it is there already. */
  notBefore(instant: Instant): Instant {
    this.#latest = Math.max(this.#latest, Math.min(instant, LAST_INSTANT));
    return this.#latest;
  }
}
