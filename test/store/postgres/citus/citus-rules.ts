// Recognizes SQL that Scrip might use but Citus would reject. Citus cannot be installed from npm, so this file has its
// own rules, taken from the Citus 13 planner (multi_router_planner.c and insert_select_planner.c).

import { END_USER_TABLES } from '../../../../src/store/postgres/schema/schema.ts';

const DISTRIBUTED = END_USER_TABLES.map((table) => new RegExp(`scrip\\.${table}\\b`));
const NAMED_BUCKETS = /\bbucket (?:= (\d+|\$\d+)|IN \(([\d, ]+)\))/g;
const VOLATILE = /\b(clock_timestamp|timeofday|random|gen_random_uuid|nextval|public\.test_clock)\b/;
const STABLE_IN_CASE = /\bCASE\b(?:(?!\bEND\b).)*\bstatement_timestamp\b/is;
/** A call of a function that Citus delegates to the worker of a bucket. */
const CALL = /^SELECT \* FROM scrip\.\w+\([$\d, ]+, \d+::smallint\)$/;
const WRITES = /^(INSERT INTO|UPDATE|DELETE FROM) scrip\.(\w+)/i;

/** Each of the 16 shards has 4 buckets that are not consecutive. */
export const SHARD_OF_BUCKET = '102008 + bucket * 37 % 64 / 4';

function shardOf(bucket: number): number {
  return 102_008 + Math.floor(((bucket * 37) % 64) / 4);
}

/** Each parameter for a bucket, such as `$1`, counts as a separate shard, because its value is not known here. */
function namesOneShard(statement: string): boolean {
  const named = [...statement.matchAll(NAMED_BUCKETS)].map(([, bucket, buckets]) => bucket ?? (buckets as string));
  const shards = named.map((text) =>
    text.startsWith('$') ? text : text.split(',').map((one) => shardOf(Number(one))),
  );
  return new Set(shards.flat()).size === 1;
}

/**
 * Refuses statements that Citus rejects, and statements that would lock or change rows in several shards. Also refuses
 * statements with two lists of buckets, because Citus sends these to all shards.
 */
export function refusalOf(statement: string): string | null {
  // The query builder quotes names and writes keywords in lower case.
  const text = statement.trim().replaceAll(/"(\w+)"/g, '$1');
  const [, written, table = ''] = WRITES.exec(text) ?? [];
  const verb = written?.toUpperCase();
  const isApart = namesOneShard(text);
  if (/\bAS (MATERIALIZED )?\(\s*(INSERT|UPDATE|DELETE)\b/.test(text)) return 'the statement writes in a WITH clause';
  if (verb !== undefined && VOLATILE.test(text)) return 'the statement writes and calls a volatile function';
  if (verb !== undefined && STABLE_IN_CASE.test(text)) return 'the statement writes and reads the clock in a CASE';
  if (verb === 'INSERT INTO' && /\bVALUES\b.*\(\s*SELECT\b/s.test(text))
    return 'the statement has a SELECT within VALUES';
  if (text.includes('force_generic_plan')) return 'Citus rejects generic plans of an INSERT with a SELECT';
  if (/\bbucket IN \([\d, ]+\)[^()]*\bbucket IN \(/.test(text)) return 'the statement has two lists of buckets';
  if (!DISTRIBUTED.some((table) => table.test(text))) return null;
  if (/\bFOR (UPDATE|SHARE)\b/.test(text) && !isApart) return 'the statement locks rows of several shards';
  if (/\bLATERAL\b.*\bLIMIT\b/s.test(text) && !isApart) return 'the statement has a LATERAL subquery with a LIMIT';
  if (
    (verb === 'UPDATE' || verb === 'DELETE FROM') &&
    END_USER_TABLES.includes(table) &&
    /\b(FROM|USING|IN)\b.*\b(unnest|SELECT)\b/s.test(text.slice(12)) &&
    !isApart
  )
    return 'the statement changes rows of several shards by a join';
  return null;
}

/** Only the coordinator has this table. */
const ON_COORDINATOR = 'LOCK TABLE scrip.clock IN ROW EXCLUSIVE MODE';

/** Whether a statement might use more than one shard. Each statement of a batch must use only one shard. */
export function leavesItsShard(statement: string): boolean {
  const isApart = namesOneShard(statement) || CALL.test(statement) || /\bVALUES \((\d+|\$1)\b/.test(statement);
  return /\bscrip\.\w+/.test(statement) && statement !== ON_COORDINATOR && !isApart;
}

export function workerStatements(statement: string): number {
  if (DISTRIBUTED.some((table) => table.test(statement))) return namesOneShard(statement) ? 1 : SHARDS;
  const isReferenceChanged = WRITES.test(statement.trim()) && !/\bscrip\.clock\b/.test(statement);
  return isReferenceChanged ? WORKERS : 0;
}

const SHARDS = 16;
const WORKERS = 2;
