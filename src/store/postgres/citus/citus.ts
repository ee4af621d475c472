// Distributes rows over machines with Citus, by bucket. Citus accepts a statement that locks or changes rows only if it
// contains the bucket as a constant. Citus also refuses a write in a WITH clause.

import { type Connection, sql } from '../pool/connection.ts';
import { BATCH_TIMEOUTS, setLocal } from '../pool/transactions.ts';
import { BUCKETS, bucketOf, KEY, KEY_TYPES, sameKey } from '../rows/key.ts';
import { columnsOf } from '../rows/ledger-rows.ts';
import { unnest } from '../rows/row-arrays.ts';
import type { LedgerTables, Part, Placement } from './placement.ts';

const PARTS = Array.from({ length: BUCKETS }, (_, bucket) => partOf(bucket));

export const CITUS: Placement = {
  distribute,
  parts: PARTS,
  partOf: (user) => PARTS[bucketOf(user)] as Part,
  lanes: (atOnce) => ({ count: BUCKETS, atOnce, of: bucketOf }),
  // Set only timeouts, since the documentation of Citus does not say what its workers do with other settings.
  begin: [sql('BEGIN'), ...setLocal(BATCH_TIMEOUTS)],
};

function partOf(bucket: number): Part {
  return {
    bucket,
    isShard: true,
    within: (table) => ` AND ${table}.bucket = ${bucket}`,
    // Citus accepts this INSERT only if its SELECT reads a table of the same shard.
    insert(table, columns, types, values = columnsOf('k', columns)) {
      return `INSERT INTO scrip.${table} (${KEY}, ${columns})
        SELECT e.bucket, e.account, e.end_user, ${values}
        FROM ${unnest([...KEY_TYPES, ...types])} AS k (${KEY}, ${columns})
        JOIN scrip.end_users e ON ${sameKey('e')} AND e.bucket = ${bucket}`;
    },
  };
}

async function distribute(connection: Connection, { spread, whole }: LedgerTables): Promise<void> {
  const placed = `SELECT relname FROM pg_dist_partition JOIN pg_class ON oid = logicalrelid WHERE relnamespace = 'scrip'::regnamespace`;
  const done = new Set((await connection.rows(sql(placed))).map(([table]) => table));
  // Use one machine after the other: parallel connections could wait for each other's locks.
  await connection.script(`SET LOCAL citus.multi_shard_modify_mode TO 'sequential'`);
  for (const table of whole.filter((table) => !done.has(table)))
    await connection.script(`SELECT create_reference_table('scrip.${table}')`);
  const [first] = spread;
  for (const table of spread.filter((table) => !done.has(table))) {
    const placing = table === first ? `shard_count => ${BUCKETS}` : `colocate_with => 'scrip.${first}'`;
    await connection.script(`SELECT create_distributed_table('scrip.${table}', 'bucket', ${placing})`);
  }
}
