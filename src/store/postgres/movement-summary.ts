// Adds up what the batches have entered, now and then, behind them. Each step is a plain statement about one bucket where
// tables are distributed, since Citus takes no more than that.

import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { BEGIN_UNPROMISED } from './connection.ts';
import { entriesOf } from './migrations/0005-account-reads.ts';
import { RowArrays } from './row-arrays.ts';
import { insert, unnest } from './statements.ts';

/** How often the rows of batches are added up. At 500 batches a second of 40 entries each, reading those that wait takes 20 ms. */
const ADD_UP_MS = 2_000;

/** Rows added up in one go, so that it ends within the time that a query has. */
const ADD_UP_ROWS = 2_000;

const BATCH_TYPES = ['smallint', 'uuid'] as const;
const SLOT_TYPES = ['integer', 'smallint', 'integer'] as const;
const PART_TYPES = ['smallint', ...SLOT_TYPES, 'uuid'] as const;
const SUM_TYPES = [...PART_TYPES, 'numeric', 'bigint'] as const;
const PART = 'bucket, account, series, slot, part';

/** What a slot gains, and what a part of it holds. Credits of many end users together may pass what a number holds. */
interface Entry {
  readonly account: number;
  readonly series: number;
  readonly slot: number;
  readonly credits: string;
  readonly count: number;
}

type Part = Entry & { readonly bucket: number; readonly part: string };

/** The statements for a bucket; for all together when null. */
function statementsOf(bucket: number | null) {
  const within = (table: string) => (bucket === null ? 'true' : `${table}.bucket = ${bucket}`);
  const batches = `${unnest(BATCH_TYPES)} AS k (bucket, batch) WHERE r.bucket = k.bucket AND r.batch = k.batch AND ${within('r')}`;
  return {
    // In one order, so that several processes may do this at once: who comes second finds them gone.
    lockRecent: `SELECT bucket, batch FROM scrip.recent_movements r WHERE ${within('r')}
      ORDER BY bucket, batch LIMIT ${ADD_UP_ROWS} FOR UPDATE`,
    gained: `SELECT account, series, slot, sum(credits) AS credits, sum(count)::bigint AS count
      FROM ${entriesOf(`(SELECT r.entries FROM scrip.recent_movements r, ${batches})`)} GROUP BY account, series, slot`,
    deleteRecent: `DELETE FROM scrip.recent_movements r USING ${batches}`,
    lockParts: `SELECT m.bucket, m.account, m.series, m.slot, m.part, m.credits, m.count
      FROM ${unnest(SLOT_TYPES)} AS k (account, series, slot)
      JOIN scrip.movements m ON m.account = k.account AND m.series = k.series AND m.slot = k.slot AND ${within('m')}
      ORDER BY m.bucket, m.account, m.series, m.slot, m.part FOR UPDATE OF m`,
    deleteParts: `DELETE FROM scrip.movements m USING ${unnest(PART_TYPES)} AS k (${PART})
      WHERE m.bucket = k.bucket AND m.account = k.account AND m.series = k.series AND m.slot = k.slot
        AND m.part = k.part AND ${within('m')}`,
    insertParts: insert('movements', `${PART}, credits, count`, SUM_TYPES),
  };
}

export class MovementSummary {
  readonly #pool: Pool;
  readonly #isCitus: boolean;
  #working: Promise<void> | null = null;
  #lastMs = 0;

  constructor(pool: Pool, isCitus: boolean) {
    this.#pool = pool;
    this.#isCitus = isCitus;
  }

  /** Called every second. What fails is left for the next time. */
  tick(): void {
    const nowMs = performance.now();
    if (this.#working !== null || nowMs - this.#lastMs < ADD_UP_MS) return;
    this.#lastMs = nowMs;
    this.#working = this.addUp()
      .catch(() => {})
      .finally(() => {
        this.#working = null;
      });
  }

  async stop(): Promise<void> {
    await this.#working;
  }

  async addUp(): Promise<void> {
    for (const bucket of await this.#buckets()) {
      for (;;) {
        const taken = await this.#addUpSome(bucket);
        if (taken < ADD_UP_ROWS) break;
      }
    }
  }

  async #buckets(): Promise<readonly (number | null)[]> {
    if (!this.#isCitus) return [null];
    const { rows } = await this.#pool.query('SELECT DISTINCT bucket FROM scrip.recent_movements');
    return rows.map(({ bucket }) => bucket);
  }

  /** @returns how many rows of batches were taken */
  async #addUpSome(bucket: number | null): Promise<number> {
    const client = await this.#pool.connect();
    let isDone = false;
    try {
      await client.query(BEGIN_UNPROMISED);
      const taken = await takeRecent(client, bucket);
      await client.query('COMMIT');
      isDone = true;
      return taken;
    } finally {
      // Without COMMIT, closing the connection rolls back.
      client.release(!isDone);
    }
  }
}

async function takeRecent(client: PoolClient, bucket: number | null): Promise<number> {
  const statements = statementsOf(bucket);
  const recent = await client.query<{ bucket: number; batch: string }>(statements.lockRecent);
  const batches = new RowArrays(BATCH_TYPES);
  for (const row of recent.rows) batches.add(row.bucket, row.batch);
  if (batches.count === 0) return 0;
  const gained = await client.query<Entry>(statements.gained, batches.literals());
  await client.query(statements.deleteRecent, batches.literals());

  const slots = new RowArrays(SLOT_TYPES);
  for (const { account, series, slot } of gained.rows) slots.add(account, series, slot);
  const former = await client.query<Part>(statements.lockParts, slots.literals());
  const parts = new RowArrays(PART_TYPES);
  for (const row of former.rows) parts.add(row.bucket, row.account, row.series, row.slot, row.part);
  if (parts.count > 0) await client.query(statements.deleteParts, parts.literals());

  const sums = summed([...gained.rows, ...former.rows], bucket ?? 0);
  if (sums.count > 0) await client.query(statements.insertParts, sums.literals());
  return batches.count;
}

/** One new part for each slot, none where nothing is left. */
function summed(entries: readonly Entry[], bucket: number): RowArrays {
  const sums = new Map<string, { entry: Entry; credits: bigint; count: number }>();
  for (const entry of entries) {
    const slot = `${entry.account} ${entry.series} ${entry.slot}`;
    const sum = sums.get(slot) ?? { entry, credits: 0n, count: 0 };
    sum.credits += BigInt(entry.credits);
    sum.count += entry.count;
    sums.set(slot, sum);
  }
  const part = randomUUID();
  const rows = new RowArrays(SUM_TYPES);
  for (const { entry, credits, count } of sums.values()) {
    if (credits === 0n && count === 0) continue;
    rows.add(bucket, entry.account, entry.series, entry.slot, part, String(credits), count);
  }
  return rows;
}
