// Checks once a second that the server responds, and stores the latest instant that this process has issued, so that
// other processes, including later ones, do not issue an earlier one.
//
// While a synchronous standby is away, each COMMIT waits for it in the server and occupies a connection, even if the
// client has given up. After a COMMIT of this process got no answer, the process sends no further COMMIT while any
// COMMIT is waiting in the server. The standby confirms in the order of the log, so a new COMMIT would have to wait for
// the others.

import { StoreFault } from '../../store-fault.ts';
import { type Connection, exactInteger, sql } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { DatabaseClock } from './database-clock.ts';
import { faultOf } from './postgres-error.ts';
import { BEGIN_UNPROMISED, COMMIT } from './transactions.ts';

const INTERVAL_MS = 1_000;
/** A server that takes longer to answer counts as down. */
const ANSWER_MS = 2_000;

/**
 * A COMMIT that waits this long means that the standby is away. Longer than a COMMIT waits for a running standby, and
 * shorter than the timeout of a COMMIT in this process.
 */
const STANDBY_MS = 2_000;

/** Finds a COMMIT that waits for a standby. This query takes no lock. */
const WAITING = sql(`
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND wait_event = 'SyncRep'
    AND state_change < clock_timestamp() - interval '${STANDBY_MS} milliseconds' LIMIT 1`);

export const STANDBY_AWAY = 'no synchronous standby confirms writes';

export class Heartbeat {
  readonly #pool: ConnectionPool;
  readonly #clock: DatabaseClock;
  readonly #onLook: (trouble: StoreFault | null) => void;
  #timer: NodeJS.Timeout | undefined;
  /** The current check. Only one runs at a time: while the server hangs, more would take all connections. */
  #beating: Promise<void> | null = null;
  #isStandbySuspected = false;

  /** @param onLook called after each check, with the reason why writes are expected to fail, or null */
  constructor(pool: ConnectionPool, clock: DatabaseClock, onLook: (trouble: StoreFault | null) => void) {
    this.#pool = pool;
    this.#clock = clock;
    this.#onLook = onLook;
  }

  /**
   * Reads the clock first: if it is set back later, this process does not issue instants again that a reader may have
   * seen.
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
   * Called when a connection was lost, since a COMMIT may still be waiting in the server. Checks the server at once.
   */
  suspectStandby(): void {
    this.#isStandbySuspected = true;
    void this.#beat();
  }

  /** Asks the server only if the standby is suspected to be away. The suspicion ends when no COMMIT is waiting. */
  async isStandbyAway(connection: Connection): Promise<boolean> {
    if (!this.#isStandbySuspected) return false;
    const [waiting] = await connection.send([WAITING], ANSWER_MS);
    this.#isStandbySuspected = waiting?.rows.length !== 0;
    return this.#isStandbySuspected;
  }

  /** Errors are reported to `onLook`, and not thrown. */
  #beat(): Promise<void> {
    this.#beating ??= this.#pool
      .use((connection) => this.#look(connection))
      .catch(faultOf)
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
