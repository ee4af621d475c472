// The ledger's time on PostgreSQL: the database's clock, which all processes share. The time is never earlier than any
// instant that this process has seen or that any process has stored. With a test clock, the time is the stored instant,
// which advances only when a process moves it.

import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import { exactInteger, prepared, type Query, type TextRow } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** SQL for the database's clock, in milliseconds since 1970. */
const DATABASE_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** The database answers most statements within this time. */
const SOON_MS = 500;

export class DatabaseClock {
  readonly sql: string;
  readonly isTest: boolean;
  /** SQL for the database's clock. Never uses the test clock, even if the ledger has one. */
  readonly machine: string;
  /** Reads the time in a separate statement, because Citus rejects a clock function within a statement that writes. */
  readonly query: Query;
  #latest: Instant = 0;
  /** The value of `performance.now()` when `latest` was last advanced. */
  #advancedAtMs = performance.now();

  /** @param machine SQL that replaces the database's clock, for tests */
  constructor(isTest: boolean, machine: string = DATABASE_NOW) {
    this.isTest = isTest;
    this.machine = machine;
    this.sql = isTest ? '(SELECT at FROM scrip.clock)' : `least(${machine}, ${LAST_INSTANT})`;
    this.query = prepared('now', isTest ? `SELECT ${this.sql}, ${machine}` : `SELECT ${this.sql}`)([]);
  }

  /** The latest instant that this process has issued or seen. */
  get latest(): Instant {
    return this.#latest;
  }

  /** An instant slightly in the future. Most statements that are sent now are answered before this instant. */
  get soon(): Instant {
    return Math.min(this.#latest + Math.ceil(performance.now() - this.#advancedAtMs) + SOON_MS, LAST_INSTANT);
  }

  /** Reads the ledger's time without advancing `latest`. */
  async peek(pool: ConnectionPool): Promise<Instant> {
    return this.read(await pool.rows(this.query));
  }

  /** Reads the time for records that do not follow a test clock, such as API keys. */
  async peekMachine(pool: ConnectionPool): Promise<Instant> {
    const rows = await pool.rows(this.query);
    return this.machineTime(rows, this.read(rows));
  }

  /** @param rows the rows that `query` returned */
  read(rows: readonly TextRow[]): Instant {
    return exactInteger(rows[0]?.[0]);
  }

  /**
   * Returns the time for records that do not follow a test clock: the database's clock if the ledger has a test clock,
   * otherwise `now`.
   *
   * @param rows the rows that `query` returned
   */
  machineTime(rows: readonly TextRow[], now: Instant): Instant {
    return this.isTest ? exactInteger(rows[0]?.[1]) : now;
  }

  /** Advances `latest` to `instant`, unless `latest` is already later. */
  notBefore(instant: Instant): Instant {
    const reached = Math.min(instant, LAST_INSTANT);
    if (reached > this.#latest) {
      this.#latest = reached;
      this.#advancedAtMs = performance.now();
    }
    return this.#latest;
  }
}
