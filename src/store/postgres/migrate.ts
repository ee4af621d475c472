// Brings a database to the schema of this version: one process at a time, beside whatever older version is running. A
// schema of a newer version is refused. On Citus the tables are then spread over the machines by bucket.

import type { Pool, PoolClient } from 'pg';
import { CannotOpen } from '../store.ts';
import { BUCKETS } from './bucket.ts';
import { ledger } from './migrations/0001-ledger.ts';
import { consoleTables } from './migrations/0002-console.ts';
import { latestOfACycle } from './migrations/0003-latest-of-a-cycle.ts';
import { answers } from './migrations/0004-answers.ts';
import { accountReads, fillByBucket } from './migrations/0005-account-reads.ts';
import { chainOfAnEndUser } from './migrations/0006-chain-of-an-end-user.ts';

/** In order. A migration that has been released never changes, and only adds: an older version may be running beside it. */
const MIGRATIONS: readonly string[] = [ledger, consoleTables, latestOfACycle, answers, accountReads, chainOfAnEndUser];

/** "Scrp": the advisory lock under which one process migrates. Nothing else takes one. */
const MIGRATION_LOCK = 0x53637270;

/** The others are placed beside the first. */
const DISTRIBUTED_TABLES = ['end_users', 'cycles', 'postings', 'answers', 'movements', 'recent_movements'] as const;
/** Whole on every machine. One that refers to another comes behind it. */
const REFERENCE_TABLES = [
  'accounts',
  'api_keys',
  'clock',
  'console_users',
  'console_sessions',
  'console_credentials',
  'console_verifications',
  'console_members',
  'console_invitations',
  'console_attempts',
];

/** @throws CannotOpen when the schema is newer than this version */
export async function migrate(pool: Pool, wantsCitus: boolean | null): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    await client.query('CREATE SCHEMA IF NOT EXISTS scrip');
    await client.query(
      'CREATE TABLE IF NOT EXISTS scrip.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL)',
    );
    const current = await schemaOf(client);
    refuseNewer(current);
    for (const [index, sql] of MIGRATIONS.entries()) {
      if (index < current) continue;
      await client.query(sql);
      await client.query('INSERT INTO scrip.migrations VALUES ($1, now())', [index + 1]);
    }
    if (await isCitus(client, wantsCitus)) await distribute(client);
    await client.query('COMMIT');
  } finally {
    // Without COMMIT, closing the connection rolls back.
    client.release(true);
  }
}

/** Null when there is no ledger in this database. */
export async function schemaState(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query(`SELECT to_regclass('scrip.migrations') IS NOT NULL AS there`);
  if (!rows[0].there) return null;
  const current = await schemaOf(pool);
  refuseNewer(current);
  return current === MIGRATIONS.length ? current : null;
}

/** The mark of a copy that has begun in this database and is not finished. */
export async function hasUnfinishedCopy(client: Pool | PoolClient): Promise<boolean> {
  const { rows } = await client.query(`SELECT to_regclass('scrip.copying') IS NOT NULL AS there`);
  return rows[0].there;
}

/** @throws CannotOpen: what is there of such a ledger is right, and part of it is missing */
export async function refuseUnfinishedCopy(pool: Pool): Promise<void> {
  if (!(await hasUnfinishedCopy(pool))) return;
  throw new CannotOpen('The database holds an unfinished copy; run the same `scrip copy` again, and it goes on.');
}

export async function isCitus(client: Pool | PoolClient, wanted: boolean | null): Promise<boolean> {
  if (wanted !== null) return wanted;
  const { rows } = await client.query(`SELECT 1 FROM pg_extension WHERE extname = 'citus'`);
  return rows.length > 0;
}

async function schemaOf(client: Pool | PoolClient): Promise<number> {
  const { rows } = await client.query('SELECT coalesce(max(number), 0) AS number FROM scrip.migrations');
  return rows[0].number;
}

function refuseNewer(current: number): void {
  if (current <= MIGRATIONS.length) return;
  throw new CannotOpen(
    `The ledger in this database was written by a newer Scrip (schema ${current}; this one knows up to ${MIGRATIONS.length}); start that version, or point DATABASE_URL elsewhere.`,
  );
}

/** All tables of the ledger alike, so that all rows of an end user are on one machine; those that a migration added, later. */
async function distribute(client: PoolClient): Promise<void> {
  const { rows } = await client.query(
    `SELECT relname FROM pg_dist_partition JOIN pg_class ON oid = logicalrelid WHERE relnamespace = 'scrip'::regnamespace`,
  );
  const isDone = new Set(rows.map(({ relname }) => relname));
  // One machine behind the other, so that no table waits for what another one does on a connection of its own.
  await client.query(`SET LOCAL citus.multi_shard_modify_mode TO 'sequential'`);
  if (!isDone.has('movements')) await client.query(fillByBucket(BUCKETS));
  for (const table of REFERENCE_TABLES) {
    if (!isDone.has(table)) await client.query(`SELECT create_reference_table('scrip.${table}')`);
  }
  for (const table of DISTRIBUTED_TABLES) {
    if (isDone.has(table)) continue;
    const placing =
      table === DISTRIBUTED_TABLES[0]
        ? `shard_count => ${BUCKETS}`
        : `colocate_with => 'scrip.${DISTRIBUTED_TABLES[0]}'`;
    await client.query(`SELECT create_distributed_table('scrip.${table}', 'bucket', ${placing})`);
  }
}
