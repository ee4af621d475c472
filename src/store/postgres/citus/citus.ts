// Distributes rows over machines with Citus. A part is a shard: the buckets that Citus stores together. On Citus, a
// statement can lock or change rows of only one shard, so every such statement contains the buckets of its part as
// constants. Citus also refuses some statements that PostgreSQL accepts, such as a write in a WITH clause.

import assert from 'node:assert/strict';
import { type Connection, prepared, sql } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BATCH_TIMEOUTS, BEGIN_SNAPSHOT, setLocal } from '../pool/transactions.ts';
import { BUCKETS, bucketOf, KEY, KEY_TYPES, sameKey } from '../rows/key.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { unnest } from '../rows/row-arrays.ts';
import { beginWith, type LedgerTables, type Part, type Placement } from './placement.ts';

/**
 * Makes Citus use the shards one after the other, over one connection to each worker. After a statement that used
 * several connections to a worker, Citus refuses to change a reference table in the same transaction.
 */
const SEQUENTIAL = setLocal({ 'citus.multi_shard_modify_mode': 'sequential' });

/**
 * The default number of batches that are written at the same time. A batch spends most of its time waiting for Citus to
 * plan its statements. On two cores, with a coordinator and two workers, Scrip processed a third more subtractions per
 * second when it wrote four batches at the same time instead of one.
 */
const AT_ONCE = 4;

/**
 * The lock that Citus takes for each statement that writes to a shard. To move the shard, Citus takes a conflicting
 * lock. Citus takes no lock for `SELECT … FOR UPDATE` or for a call of a function, so a batch takes the lock itself.
 * Otherwise, the shard could move between the statements of a batch: another process could then lock the same end users
 * in the new place, and one of the two batches would overwrite balances of the other.
 */
const SHARE_LOCK = 5;

/**
 * A function locks rows on a worker, but no table on the coordinator. Each batch therefore locks this table, which
 * exists only on the coordinator, so that operator commands can wait for batches and pause them.
 */
const PAUSABLE = prepared('pausable', 'LOCK TABLE scrip.clock IN ROW EXCLUSIVE MODE')([]);

/**
 * Waits for moves of shards, and prevents further moves. Without this lock, a transaction with one snapshot could read a
 * shard as empty: a worker takes its snapshot at the first statement of the transaction, and does not see rows that are
 * moved to the worker later.
 */
const STAY_ALL = [
  ...setLocal({ statement_timeout: 0, lock_timeout: 0 }),
  sql('LOCK TABLE scrip.shard_moves IN SHARE MODE'),
];

/** The pause is long because each search for work runs a statement on every shard. */
const QUIET_PAUSE_MS = 10_000;

/**
 * The shard of each bucket. Citus chooses the shard by the hash of the bucket, so the buckets of a shard follow no
 * pattern.
 */
const SHARDS = sql(
  `SELECT get_shard_id_for_distribution_column('scrip.end_users', bucket::smallint)
   FROM generate_series(0, ${BUCKETS - 1}) AS bucket ORDER BY bucket`,
);

/** Reads which buckets share a shard. All tables about end users are distributed in the same way. */
export async function readPlacement(pool: ConnectionPool): Promise<Placement> {
  const shards = (await pool.rows(SHARDS)).map(([shard]) => shard as string);
  assert(shards.length === BUCKETS, 'each bucket has a shard');
  return placementOn(shards);
}

/** @param shards the shard of each bucket */
export function placementOn(shards: readonly string[]): Placement {
  const buckets = Map.groupBy(shards.keys(), (bucket) => shards[bucket] as string);
  const parts = [...buckets].map(([shard, buckets]) => partOf(shard, buckets));
  const laneOfBucket = shards.map((shard) => parts.findIndex(({ name }) => name === nameOf(shard)));
  const partOfBucket = (bucket: number) => parts[laneOfBucket[bucket] as number] as Part;
  return {
    parts,
    partOf: (user) => partOfBucket(bucketOf(user)),
    partOfBucket,
    lanes: (atOnce) => ({
      count: parts.length,
      atOnce: atOnce ?? AT_ONCE,
      of: (user) => laneOfBucket[bucketOf(user)] as number,
    }),
    // `BY_KEY` is left out, because its planner settings would not reach the workers. The settings would also force
    // generic query plans, with which Citus refuses the INSERT statements.
    begin: [...beginWith(BATCH_TIMEOUTS), PAUSABLE],
    byKey: [],
    throughout: SEQUENTIAL,
    // With several connections to a worker, each connection would have its own snapshot.
    beginSnapshot: [BEGIN_SNAPSHOT, ...setLocal({ 'citus.max_adaptive_executor_pool_size': 1 })],
    stayAll: STAY_ALL,
    pause: sql('LOCK TABLE scrip.clock IN EXCLUSIVE MODE'),
    quietPauseMs: QUIET_PAUSE_MS,
  };
}

function nameOf(shard: string): string {
  return `shard ${shard}`;
}

/** @param buckets the buckets of the shard, in ascending order */
function partOf(shard: string, buckets: readonly number[]): Part {
  const within = (table: string) => ` AND ${table}.bucket IN (${buckets.join(', ')})`;
  return {
    name: nameOf(shard),
    buckets,
    bucket: buckets[0] as number,
    isShard: true,
    stay: [prepared('stay', `SELECT lock_shard_metadata(${SHARE_LOCK}, ARRAY[${shard}]::bigint[])`)([])],
    within,
    // Citus accepts this INSERT only if its SELECT reads a table of the same shard.
    insert(table, columns, types, values = columnsOf('k', columns)) {
      return `INSERT INTO scrip.${table} (${KEY}, ${columns})
        SELECT e.bucket, e.account, e.end_user, ${values}
        FROM ${unnest([...KEY_TYPES, ...types])} AS k (${KEY}, ${columns})
        JOIN scrip.end_users e ON ${sameKey('e')}${within('e')}`;
    },
    insertFew(table, columns, types, values = columnsOf('k', columns)) {
      // Citus rejects a SELECT within VALUES.
      if (values.includes('SELECT')) return null;
      return (rows) => insertFewSql(table, columns, [...KEY_TYPES, ...types], values, rows);
    },
  };
}

/**
 * SQL that inserts `rows` rows of end users of one shard. The parameters are the values of the rows.
 *
 * @param types the types of the columns of the key, and of `columns`
 * @param values see `Part.insert`
 */
export function insertFewSql(
  table: string,
  columns: string,
  types: readonly string[],
  values: string,
  rows: number,
): string {
  const names = `${KEY}, ${columns}`.split(', ');
  const rowSql = (row: number) =>
    `${columnsOf('k', KEY)}, ${values}`.replaceAll(/\bk\.(\w+)/g, (_, name) => {
      const column = names.indexOf(name);
      return `$${row * types.length + column + 1}::${types[column]}`;
    });
  const list = Array.from({ length: rows }, (_, row) => `(${rowSql(row)})`).join(', ');
  return `INSERT INTO scrip.${table} (${KEY}, ${columns}) VALUES ${list}`;
}

/**
 * Distributes tables over the workers, within the caller's transaction. Does not change tables that are already
 * distributed.
 *
 * @param shards the number of shards of each table, if no table is distributed yet
 */
export async function distribute(
  connection: Connection,
  { spread, whole }: LedgerTables,
  shards: number,
): Promise<void> {
  const placed = `SELECT relname FROM pg_dist_partition JOIN pg_class ON oid = logicalrelid WHERE relnamespace = 'scrip'::regnamespace`;
  const done = new Set((await connection.rows(sql(placed))).map(([table]) => table));
  // With parallel connections, one connection could wait for locks that another holds.
  await connection.send(SEQUENTIAL);
  for (const table of whole.filter((table) => !done.has(table)))
    await connection.script(`SELECT create_reference_table('scrip.${table}')`);
  const [first] = spread;
  for (const table of spread.filter((table) => !done.has(table))) {
    const placing = table === first ? `shard_count => ${shards}` : `colocate_with => 'scrip.${first}'`;
    await connection.script(`SELECT create_distributed_table('scrip.${table}', 'bucket', ${placing})`);
  }
}
