// Once a second the server is asked whether it is there, and the latest instant that this process has given out is kept, so
// that it still counts for the other processes and for those to come.
//
// While a synchronous standby is away, a COMMIT waits for it in the server, whether its client has given up or not. Each
// would leave a connection behind. So once a COMMIT of this process got no answer, no further one is sent until none is
// seen to wait: the standby confirms in the order of the log, so that a new one would wait behind those.

import { StoreFault } from '../../store-fault.ts';
import { type Connection, exactInteger, sql } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { DatabaseClock } from './database-clock.ts';
import { faultOf } from './postgres-error.ts';
import { BEGIN_UNPROMISED, COMMIT } from './transactions.ts';

const INTERVAL_MS = 1_000;
/** A server that takes longer counts as one that is down. */
const ANSWER_MS = 2_000;

/** Longer than a COMMIT waits while the standby is there, and shorter than this process waits for one. */
const STANDBY_MS = 2_000;

/** Asking takes no lock. */
const WAITING = sql(`
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND wait_event = 'SyncRep'
    AND state_change < clock_timestamp() - interval '${STANDBY_MS} milliseconds' LIMIT 1`);

export const STANDBY_AWAY = 'no synchronous standby confirms what is written';

export class Heartbeat {
  readonly #pool: ConnectionPool;
  readonly #clock: DatabaseClock;
  readonly #onLook: (trouble: StoreFault | null) => void;
  #timer: NodeJS.Timeout | undefined;
  /** One at a time: while the server hangs, they would take all connections. */
  #beating: Promise<void> | null = null;
  #isStandbySuspected = false;

  /** @param onLook called with why writes cannot be expected to work, or null when they can */
  constructor(pool: ConnectionPool, clock: DatabaseClock, onLook: (trouble: StoreFault | null) => void) {
    this.#pool = pool;
    this.#clock = clock;
    this.#onLook = onLook;
  }

  /** Looks at the clock first: an instant that a reader may have seen does not come back when the clock is then set back. */
  async start(): Promise<void> {
    this.#clock.notBefore(await this.#clock.peek(this.#pool));
    await this.#beat();
    this.#timer = setInterval(() => void this.#beat(), INTERVAL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beat();
  }

  /** A connection was lost, and a COMMIT may have been left behind: the server is looked at now. */
  suspectStandby(): void {
    this.#isStandbySuspected = true;
    void this.#beat();
  }

  /** Asks only when there is a suspicion, which ends when the server says so. */
  async isStandbyAway(connection: Connection): Promise<boolean> {
    if (!this.#isStandbySuspected) return false;
    const [waiting] = await connection.send([WAITING], ANSWER_MS);
    this.#isStandbySuspected = waiting?.rows.length !== 0;
    return this.#isStandbySuspected;
  }

  /** What goes wrong is reported, and not thrown. */
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
