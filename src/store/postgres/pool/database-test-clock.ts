// The test clock of a ledger in PostgreSQL. Once the clock has been moved, the next statement of every process uses the
// new time.

import type { Instant } from '../../../ledger/instant.ts';
import { StoreFault } from '../../store-fault.ts';
import { movedTo, type TestClock, type TestClockMove } from '../../test-clock.ts';
import { exactInteger, sql } from './connection.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { DatabaseClock } from './database-clock.ts';
import { attempt, isConnectionLost } from './postgres-error.ts';
import { BATCH_TIMEOUTS, BEGIN, COMMIT_BATCH, setLocal } from './transactions.ts';

/** Locks the row of the clock, so that concurrent moves add up. If this process dies, a timeout releases the lock. */
const BEGIN_LOCKED = [BEGIN, ...setLocal(BATCH_TIMEOUTS), sql('SELECT at FROM scrip.clock FOR UPDATE')];

export class DatabaseTestClock implements TestClock {
  readonly #pool: ConnectionPool;
  readonly #clock: DatabaseClock;

  constructor(pool: ConnectionPool, clock: DatabaseClock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** Sets a new test clock to the database's time. */
  async begin(): Promise<void> {
    // Citus rejects a clock function within a statement that writes.
    const [[now] = []] = await this.#pool.rows(sql(`SELECT ${this.#clock.machine}`));
    await this.#pool.rows(sql('UPDATE scrip.clock SET at = $1 WHERE at = 0', [exactInteger(now)]));
  }

  now(): Promise<Instant> {
    return attempt(async () => this.#clock.notBefore(await this.#clock.peek(this.#pool)));
  }

  async move(move: TestClockMove): Promise<Instant | null> {
    const to = await attempt(() => this.#move(move));
    if (to !== null) this.#clock.notBefore(to);
    return to;
  }

  #move(move: TestClockMove): Promise<Instant | null> {
    return this.#pool.use(async (connection) => {
      const locked = await connection.send(BEGIN_LOCKED);
      // This process might have issued an instant that is not stored yet.
      const now = Math.max(this.#clock.read(locked.at(-1)?.rows ?? []), this.#clock.latest);
      const to = movedTo(now, move);
      const saving = to === null ? [] : [sql('UPDATE scrip.clock SET at = $1', [to])];
      const warning = await connection.commit([...saving, ...COMMIT_BATCH]).catch((error) => {
        if (!isConnectionLost(error)) throw error;
        return (error as Error).message;
      });
      if (warning !== null) throw new StoreFault('OutcomeUnknown', `COMMIT was not confirmed: ${warning}`);
      return to;
    });
  }
}
