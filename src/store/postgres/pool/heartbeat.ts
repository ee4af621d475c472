// Once a second, checks that the server responds, and stores the latest instant that this process has issued. Other
// processes read this instant, so that they do not issue an earlier one.
//
// While a synchronous standby is unreachable, each COMMIT stays in progress on the server and occupies a connection,
// even after the client has given up. If a COMMIT gets no answer, this process writes no further batch while the server
// reports that a COMMIT is waiting for a standby. A standby confirms COMMITs in the order of the write-ahead log, so
// the COMMIT of a new batch would wait as well.

import { StoreFault } from '../../store-fault.ts';
import { type Connection, exactInteger, sql } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { DatabaseClock } from './database-clock.ts';
import { faultOf } from './postgres-error.ts';
import { BEGIN_UNPROMISED, COMMIT } from './transactions.ts';

const INTERVAL_MS = 1_000;
/** A server that takes longer than this to answer a check counts as down. */
const ANSWER_MS = 2_000;

/**
 * If a COMMIT waits this long, the standby is considered unreachable: a running standby confirms a COMMIT sooner.
 * `STANDBY_MS` is shorter than `ANSWER_TIMEOUT_MS`, after which this process stops waiting for a COMMIT.
 */
const STANDBY_MS = 2_000;

/** Finds a COMMIT that has been waiting longer than `STANDBY_MS` for a standby. This query takes no lock. */
const WAITING = sql(`
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND wait_event = 'SyncRep'
    AND state_change < clock_timestamp() - interval '${STANDBY_MS} milliseconds' LIMIT 1`);

export const STANDBY_AWAY = 'no synchronous standby is confirming writes';

export class Heartbeat {
  readonly #pool: ConnectionPool;
  readonly #clock: DatabaseClock;
  readonly #onLook: (trouble: StoreFault | null) => void;
  #timer: NodeJS.Timeout | undefined;
  /** Only one check runs at a time; otherwise, checks would take all connections while the server hangs. */
  #beating: Promise<void> | null = null;
  #isStandbySuspected = false;

  /** @param onLook called after each check: with the reason if writes are expected to fail, otherwise with null */
  constructor(pool: ConnectionPool, clock: DatabaseClock, onLook: (trouble: StoreFault | null) => void) {
    this.#pool = pool;
    this.#clock = clock;
    this.#onLook = onLook;
  }

  /**
   * Reads the clock before the first check. A client might already have received the current time from another process,
   * so this process must not issue an earlier instant, even if the clock is set back later.
   */
  async start(): Promise<void> {
    this.#clock.notBefore(await this.#clock.peek(this.#pool));
    await this.#beat();
    this.#timer = setInterval(() => void this.#beat(), INTERVAL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beat();
  }

  /**
   * Call this after a connection is lost: on the server, the connection's COMMIT might still be waiting for a standby.
   */
  suspectStandby(): void {
    this.#isStandbySuspected = true;
    void this.#beat();
  }

  /** Queries the server only while the standby is suspected to be unreachable. */
  async isStandbyAway(connection: Connection): Promise<boolean> {
    if (!this.#isStandbySuspected) return false;
    const [waiting] = await connection.send([WAITING], ANSWER_MS);
    this.#isStandbySuspected = waiting?.rows.length !== 0;
    return this.#isStandbySuspected;
  }

  /** Reports errors to `onLook` instead of throwing them. */
  #beat(): Promise<void> {
    this.#beating ??= this.#pool
      .use((connection) =>
        this.#look(connection).catch((error) => {
          throw faultOf(error);
        }),
      )
      // Anything that prevents a connection, such as an expired certificate, has a cause outside Scrip.
      .catch((error) => (error instanceof StoreFault ? error : new StoreFault('StoreUnavailable', error.message)))
      .then((fault) => {
        this.#onLook(fault);
        this.#beating = null;
      });
    return this.#beating;
  }

  async #look(connection: Connection): Promise<StoreFault | null> {
    const keep = sql('UPDATE scrip.clock SET at = greatest(at, $1) RETURNING at', [this.#clock.latest]);
    const kept = (await connection.send([...BEGIN_UNPROMISED, keep, COMMIT], ANSWER_MS)).at(-2);
    this.#clock.notBefore(exactInteger(kept?.rows[0]?.[0]));
    return (await this.isStandbyAway(connection)) ? new StoreFault('StoreUnavailable', STANDBY_AWAY) : null;
  }
}
