// Movements in PostgreSQL: written with each batch as a row of its own, added up behind the batches, and compared with
// the postings. On Citus each of these concerns one bucket, which is named as a constant.

import { randomUUID } from 'node:crypto';
import type { PoolClient, QueryResult } from 'pg';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import { creditsOf, type Movement } from '../../ledger/movement.ts';
import { bucketOf, bucketsApart } from './bucket.ts';
import type { DatabaseClock } from './database-clock.ts';
import { entriesOf, movementDifferences } from './migrations/0005-account-reads.ts';

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

/** What PostgreSQL says of a number that a column cannot hold. */
const OUT_OF_RANGE = '22003';

/** Findings that are told; a table that is gone would give one for each of its rows. */
const FAULTS_MAX = 20;

/** Where the movements are not what the postings say. Each comparison is of one snapshot, beside running servers. */
export async function movementFaults(
  client: PoolClient,
  { clock, isCitus }: { clock: DatabaseClock; isCitus: boolean },
): Promise<string[]> {
  const faults: string[] = [];
  const now = String(await latestOf(client, clock));
  for (const bucket of bucketsApart(isCitus)) {
    const { rows } = await client.query(`${movementDifferences(now, bucket)} LIMIT ${FAULTS_MAX}`).catch((error) => {
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
  const now = String(await latestOf(client, clock));
  for (const bucket of bucketsApart(isCitus)) {
    await client.query(
      `INSERT INTO scrip.movements (bucket, account, series, slot, part, credits, count)
       SELECT ${bucket ?? 0}, account, series, slot, $1, credits, count FROM (${movementDifferences(now, bucket)}) AS d`,
      [randomUUID()],
    );
  }
  await client.query('COMMIT');
}

/** What this process has seen counts as well: it is not kept at once. */
async function latestOf(client: PoolClient, clock: DatabaseClock): Promise<Instant> {
  return Math.max(await clock.ask(client), clock.latest);
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
