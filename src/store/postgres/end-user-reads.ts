// What is read of one end user: what it holds, alone or with a page of what happened to it in the same snapshot. A renewal
// that is not stored yet is shown only where no write can come before it any more.
//
//   read ──▶ nothing is due ──▶ shown
//     └── a renewal is due ──▶ read again, behind whoever writes to this end user and before whoever comes next ──▶ shown

import type { Pool, PoolClient, QueryConfig, QueryResultRow } from 'pg';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, hasEnded, inBurnOrder, renews } from '../../ledger/cycle.ts';
import { renewalsDueCount } from '../../ledger/settle.ts';
import type { Loaded } from '../loaded.ts';
import { pipelined } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { keyOf } from './key.ts';
import { type CycleRow, cycleOf } from './rows.ts';

/** A cycle, or nulls where there is none; the time comes all the same. */
type HeldRow = { [Column in keyof CycleRow]: CycleRow[Column] | null } & { now: number };

/** @param now SQL for the time */
const held = (now: string) => `
  SELECT c.*, clock.now FROM (SELECT ${now} AS now) AS clock LEFT JOIN (
    SELECT * FROM scrip.cycles
    WHERE bucket = $1 AND account = $2 AND end_user = $3 AND ends_at > $4
    UNION ALL
    SELECT * FROM scrip.cycles
    WHERE bucket = $1 AND account = $2 AND end_user = $3 AND type = 'recurring' AND status = 'active' AND ends_at <= $4
  ) AS c ON true`;

/** A batch has the row of each of its end users locked from before its instant until it is durable. */
const LOCK = `
  SELECT 1 FROM scrip.end_users WHERE bucket = $1 AND account = $2 AND end_user = $3 FOR SHARE`;

/** A batch takes far less, unless it waits for a standby; and whoever waits has a connection that others need. */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '1s'`;

const NO_PAGE: QueryConfig = { text: 'SELECT WHERE false' };

export interface EndUserReading {
  /** @throws StoreFault for what the server said */
  readonly unavailable: (error: unknown) => never;
  /** @throws StoreFault for rows that cannot be true */
  readonly broken: (error: unknown) => never;
}

export class EndUserReads {
  readonly #pool: Pool;
  readonly #clock: DatabaseClock;
  readonly #held: string;
  readonly #reading: EndUserReading;

  constructor(pool: Pool, clock: DatabaseClock, reading: EndUserReading) {
    this.#pool = pool;
    this.#clock = clock;
    this.#held = held(clock.now);
    this.#reading = reading;
  }

  async cycles(user: EndUserKey): Promise<Loaded> {
    const { rows } = await this.#pool.query<HeldRow>(this.#heldBy(user)).catch(this.#reading.unavailable);
    const loaded = this.#loaded(rows);
    return hasRenewed(loaded) ? (await this.#behindWriters(user, NO_PAGE))[0] : loaded;
  }

  /** @param page asks for rows that are to be of the same snapshot: a renewal that is stored in between would be in both */
  async withPage<Row extends QueryResultRow>(user: EndUserKey, page: QueryConfig): Promise<readonly [Loaded, Row[]]> {
    const [, held, rows] = await this.#onClient((client) => [
      client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'),
      client.query<HeldRow>(this.#heldBy(user)),
      client.query<Row>(page),
      client.query('COMMIT'),
    ]);
    const loaded = this.#loaded(held.rows);
    return hasRenewed(loaded) ? this.#behindWriters<Row>(user, page) : [loaded, rows.rows];
  }

  /** Statement by statement, so that the rows are read once they are locked. Nothing is written: nobody waits for a standby. */
  async #behindWriters<Row extends QueryResultRow>(user: EndUserKey, page: QueryConfig) {
    const [, , , held, rows] = await this.#onClient((client) => [
      client.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
      client.query(LOCK_TIMEOUT),
      client.query(LOCK, [...keyOf(user)]),
      client.query<HeldRow>(this.#heldBy(user)),
      client.query<Row>(page),
      client.query('ROLLBACK'),
    ]);
    return [this.#loaded(held.rows), rows.rows] as const;
  }

  #heldBy(user: EndUserKey): QueryConfig {
    return { text: this.#held, values: [...keyOf(user), this.#clock.latest] };
  }

  async #onClient<Results extends readonly unknown[]>(
    step: (client: PoolClient) => readonly [...{ [Index in keyof Results]: Promise<Results[Index]> | Results[Index] }],
  ): Promise<Results> {
    const client = await this.#pool.connect().catch(this.#reading.unavailable);
    const results = await pipelined<Results>(client, () => step(client)).catch((error) => {
      client.release(true);
      return this.#reading.unavailable(error);
    });
    client.release();
    return results;
  }

  #loaded(rows: readonly HeldRow[]): Loaded {
    try {
      const cycles = inBurnOrder(rows.filter(isCycle).map(cycleOf));
      cycles.forEach(assertCycle);
      // Not before what is stored either, should the database's clock have jumped back.
      const latestStart = cycles.at(-1)?.start ?? 0;
      const now = this.#clock.notBefore(Math.max(rows[0]?.now ?? 0, latestStart));
      // What was asked for is what had not ended when this process last looked at the clock.
      return { now, cycles: cycles.filter((cycle) => renews(cycle) || !hasEnded(cycle, now)) };
    } catch (error) {
      return this.#reading.broken(error);
    }
  }
}

/** Since what is stored. */
function hasRenewed({ cycles, now }: Loaded): boolean {
  return renewalsDueCount(cycles, now) > 0;
}

function isCycle(row: HeldRow): row is CycleRow & { now: number } {
  return row.cycle_id !== null;
}
