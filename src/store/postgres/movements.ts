// Movements in PostgreSQL: written with each batch as a row of its own, added up behind the batches, and compared with
// the postings. On Citus each of these concerns one bucket, which is named as a constant.

import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient, QueryResult } from 'pg';
import type { EndUserKey } from '../../ledger/command.ts';
import { creditsOf, type Movement } from '../../ledger/movement.ts';
import { BUCKETS, bucketOf } from './bucket.ts';
import { BEGIN_UNPROMISED } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { entriesOf, movementDifferences } from './migrations/0005-account-reads.ts';

/** How often the rows of batches are added up. At 500 batches a second of 40 entries each, reading those that wait takes 20 ms. */
const ADD_UP_MS = 2_000;

/** Rows added up in one go, so that it ends within the time that a query has. */
const ADD_UP_ROWS = 2_000;

/**
 * The movements of a batch as a row of `recent_movements`.
 *
 * @param user any of the batch
 */
export function movementRow(
  user: EndUserKey,
  movements: readonly Movement[],
): readonly [bucket: number, batch: string, entries: string] | null {
  if (movements.length === 0) return null;
  const entries = movements.map((movement) => {
    const { account, series, slot, count } = movement;
    return `[${account},${series},${slot},${creditsOf(movement)},${count}]`;
  });
  return [bucketOf(user), randomUUID(), `[${entries.join(',')}]`];
}

/**
 * Takes rows away and adds them to the sums of their slots, in one statement: it happens or it does not. Rows are locked
 * in one order, so that several processes may do it at once: who comes second finds them gone.
 *
 * @param bucket the one that it concerns; all when null
 * @param part a new UUID
 */
function addUp(bucket: number | null, part: string): string {
  const within = bucket === null ? 'true' : `bucket = ${bucket}`;
  const ofM = bucket === null ? 'true' : `m.bucket = ${bucket}`;
  return `
  ${BEGIN_UNPROMISED};
  WITH gone AS (
    DELETE FROM scrip.recent_movements r USING (
      SELECT bucket, batch FROM scrip.recent_movements WHERE ${within}
      ORDER BY bucket, batch LIMIT ${ADD_UP_ROWS} FOR UPDATE
    ) AS next WHERE r.bucket = next.bucket AND r.batch = next.batch RETURNING r.entries
  ),
  fresh AS (
    SELECT account, series, slot, sum(credits) AS credits, sum(count)::bigint AS count
    FROM ${entriesOf('gone')} GROUP BY account, series, slot
  ),
  locked AS (
    SELECT m.bucket, m.account, m.series, m.slot, m.part FROM scrip.movements m
    JOIN fresh f ON m.account = f.account AND m.series = f.series AND m.slot = f.slot
    WHERE ${ofM} ORDER BY m.bucket, m.account, m.series, m.slot, m.part FOR UPDATE OF m
  ),
  former AS (
    DELETE FROM scrip.movements m USING locked l
    WHERE ${ofM} AND m.bucket = l.bucket AND m.account = l.account AND m.series = l.series AND m.slot = l.slot
      AND m.part = l.part
    RETURNING m.account, m.series, m.slot, m.credits, m.count
  ),
  summed AS (
    INSERT INTO scrip.movements (bucket, account, series, slot, part, credits, count)
    SELECT ${bucket ?? 0}, account, series, slot, '${part}', sum(credits), sum(count)::bigint
    FROM (SELECT * FROM fresh UNION ALL SELECT * FROM former) AS entries
    GROUP BY account, series, slot HAVING sum(credits) <> 0 OR sum(count) <> 0
  )
  SELECT count(*) AS count FROM gone;
  COMMIT`;
}

/** Adds up the rows of batches, now and then, in whichever processes are running. */
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
        const results = await this.#pool.query(addUp(bucket, randomUUID()));
        const [row] = (results as unknown as QueryResult[]).flatMap(({ rows }) => rows);
        if (row.count < ADD_UP_ROWS) break;
      }
    }
  }

  async #buckets(): Promise<readonly (number | null)[]> {
    if (!this.#isCitus) return [null];
    const { rows } = await this.#pool.query('SELECT DISTINCT bucket FROM scrip.recent_movements');
    return rows.map(({ bucket }) => bucket);
  }
}

/** What PostgreSQL says of a number that a column cannot hold. */
const OUT_OF_RANGE = '22003';

/** Findings that are told; a table that is gone would give one for each of its rows. */
const FAULTS_MAX = 20;

export function bucketsToCompare(isCitus: boolean): readonly (number | null)[] {
  return isCitus ? Array.from({ length: BUCKETS }, (_, bucket) => bucket) : [null];
}

/** Where the movements are not what the postings say. Each comparison is of one snapshot, beside running servers. */
export async function movementFaults(
  client: PoolClient,
  { clock, isCitus }: { clock: DatabaseClock; isCitus: boolean },
): Promise<string[]> {
  const faults: string[] = [];
  for (const bucket of bucketsToCompare(isCitus)) {
    const { rows } = await client
      .query(`${movementDifferences(nowOf(clock), bucket)} LIMIT ${FAULTS_MAX}`)
      .catch((error) => {
        if (error.code !== OUT_OF_RANGE) throw error;
        faults.push('the totals of accounts cannot be added up: a posting or a cycle has an instant that is none');
        return { rows: [] };
      });
    for (const { account, series, slot, credits, count } of rows)
      faults.push(
        `the totals of account ${account} (series ${series}, slot ${slot}) lack ${credits} credits and a count of ${count}; \`scrip migrate --totals\` adds them up again`,
      );
  }
  return faults.slice(0, FAULTS_MAX);
}

/**
 * Puts right what `movementFaults` finds: enters what is missing as one more part. Beside running servers: their batches
 * bring their own movements, and are in the snapshot with them or not at all.
 */
export async function addUpAgain(
  client: PoolClient,
  { clock, isCitus }: { clock: DatabaseClock; isCitus: boolean },
): Promise<void> {
  // The lock comes before the snapshot, so that whoever waits for another one to finish sees what that one did.
  await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL statement_timeout = 0;
    LOCK TABLE scrip.movements IN SHARE ROW EXCLUSIVE MODE`);
  for (const bucket of bucketsToCompare(isCitus)) {
    await client.query(
      `INSERT INTO scrip.movements (bucket, account, series, slot, part, credits, count)
       SELECT ${bucket ?? 0}, account, series, slot, $1, credits, count FROM (${movementDifferences(nowOf(clock), bucket)}) AS d`,
      [randomUUID()],
    );
  }
  await client.query('COMMIT');
}

/** What this process has seen counts as well: it is not kept at once. */
function nowOf(clock: DatabaseClock): string {
  return `greatest(${clock.now}, ${clock.latest})`;
}

/** From `overviewSlots` on: the account, the first hour, the first day. */
export const OVERVIEW = `
  SELECT series, slot, sum(credits) AS credits, sum(count)::bigint AS count FROM (
    SELECT series, slot, credits, count FROM scrip.movements WHERE account = $1 AND series = 0 AND slot >= $2
    UNION ALL
    SELECT series, slot, credits, count FROM scrip.movements WHERE account = $1 AND series BETWEEN 1 AND 4 AND slot >= $3
    UNION ALL
    SELECT series, slot, credits, count FROM ${entriesOf('scrip.recent_movements')}
    WHERE account = $1 AND slot >= CASE series WHEN 0 THEN $2 ELSE $3 END
  ) AS entries GROUP BY series, slot`;

export type OverviewRows = QueryResult<{ series: number; slot: number; credits: string; count: number }>;
