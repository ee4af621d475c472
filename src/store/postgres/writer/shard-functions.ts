// Functions that run the most frequent statements of a batch on the worker of its shard. Without these functions, Citus
// would plan each statement on the coordinator, and the worker would plan it again. The functions use the tables of the
// shard by their own names, so a worker plans their statements once per connection. See
// docs/decisions/0043-functions-on-the-workers.md.

import { createHash } from 'node:crypto';
import type { Part } from '../citus/placement.ts';
import { type Connection, sql } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BY_KEY, COMMIT, READ_COMMITTED } from '../pool/transactions.ts';
import { RowsStatement } from '../rows/row-arrays.ts';
import { MIGRATION_LOCK } from '../schema/open-ledger.ts';

/** One or more statements with the same parameters and result columns. */
export interface ShardStatements {
  readonly label: string;
  /** The types of the columns of a row; see `RowsStatement`. */
  readonly rowTypes: readonly string[];
  /** The types of the parameters that follow the arrays. */
  readonly otherTypes: readonly string[];
  readonly resultTypes: readonly string[];
  readonly texts: readonly string[];
}

export interface ShardFunction {
  readonly name: string;
  readonly part: Part;
  readonly statements: ShardStatements;
}

/** The last parameter is a bucket of the shard. Citus delegates the call to the worker that stores the bucket. */
const BUCKET = 'of_bucket';

const TABLE = /\bscrip\.\w+/g;

/**
 * The name contains a hash of the definition, because processes of several versions can use the same ledger, and of the
 * shard, because a restored dump contains functions for the shards of another cluster.
 */
export function shardFunction(part: Part, statements: ShardStatements): ShardFunction {
  const definition = definitionOf('', statements, (table) => table);
  const hash = createHash('sha256').update(`${part.name} ${definition}`).digest('hex').slice(0, 12);
  return { name: `${statements.label}_${part.bucket}_${hash}`, part, statements };
}

export function callOf({ name, part, statements: { label, rowTypes, otherTypes } }: ShardFunction): RowsStatement {
  const parameters = [...rowTypes, ...otherTypes].map((_, index) => `$${index + 1}`);
  const text = `SELECT * FROM scrip.${name}(${parameters.join(', ')}, ${part.bucket}::smallint)`;
  return new RowsStatement(label, rowTypes, text);
}

/** Creates the functions that do not exist yet. */
export async function createShardFunctions(pool: ConnectionPool, functions: readonly ShardFunction[]): Promise<void> {
  if ((await missing(pool, functions)).length === 0) return;
  await pool.use(async (connection) => {
    // `script` has no timeout: creating the functions of many shards takes longer than that of a step.
    await connection.script(`${READ_COMMITTED}; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    // Another process might have created the functions while this process waited for the lock.
    for (const one of await missing(connection, functions)) await create(connection, one);
    await connection.send([COMMIT]);
  });
}

async function missing(
  server: Connection | ConnectionPool,
  functions: readonly ShardFunction[],
): Promise<readonly ShardFunction[]> {
  if (functions.length === 0) return [];
  const rows = await server.rows(sql(`SELECT proname FROM pg_proc WHERE pronamespace = 'scrip'::regnamespace`));
  const names = new Set(rows.map(([name]) => name));
  return functions.filter(({ name }) => !names.has(name));
}

async function create(connection: Connection, { name, part, statements }: ShardFunction): Promise<void> {
  const tables = [...new Set(statements.texts.flatMap((text) => text.match(TABLE) ?? []))];
  const names = tables.map(
    (table) => `shard_name('${table}', get_shard_id_for_distribution_column('${table}', $1::smallint))`,
  );
  const [shards = []] = await connection.rows(sql(`SELECT ${names.join(', ')}`, [part.bucket]));
  const definition = definitionOf(name, statements, (table) => shards[tables.indexOf(table)] as string);
  await connection.script(`${definition};
    SELECT create_distributed_function(oid::regprocedure, '${BUCKET}', 'scrip.end_users', force_delegation => true)
    FROM pg_proc WHERE pronamespace = 'scrip'::regnamespace AND proname = '${name}'`);
}

/** @param shardOf returns the name of the shard of a table */
function definitionOf(
  name: string,
  { rowTypes, otherTypes, resultTypes, texts }: ShardStatements,
  shardOf: (table: string) => string,
): string {
  // The arrays are passed as text, so that only the worker parses them.
  const parameters = [...rowTypes.map(() => 'text'), ...otherTypes, `${BUCKET} smallint`].join(', ');
  const columns = resultTypes.map((type, index) => `column_${index} ${type}`).join(', ');
  const settings = Object.entries(BY_KEY).map(([setting, value]) => `SET ${setting} = '${value}'`);
  const body = texts.map((text) => `RETURN QUERY ${text.replaceAll(TABLE, shardOf)};`);
  return `CREATE FUNCTION scrip.${name}(${parameters}) RETURNS TABLE (${columns})
    LANGUAGE plpgsql ${settings.join(' ')} AS $function$
    #variable_conflict use_column
    BEGIN ${body.join('\n')} END $function$`;
}
