// Recognizes SQL that PostgreSQL accepts and Citus rejects. The rules are taken from the planner of Citus 13
// (multi_router_planner.c and insert_select_planner.c), because the tests cannot install Citus from npm. They cover
// only SQL that Scrip might use.

import { END_USER_TABLES } from '../../../../src/store/postgres/schema/schema.ts';

const DISTRIBUTED = END_USER_TABLES.map((table) => new RegExp(`scrip\\.${table}\\b`));
/** A bucket, a parameter for a bucket, or a list of buckets. */
const NAMED_BUCKETS = /\bbucket (?:= (\d+|\$\d+)|IN \(([\d, ]+)\))/g;
const VOLATILE =
  /\b(clock_timestamp|statement_timestamp|timeofday|random|gen_random_uuid|nextval|public\.test_clock)\b/;
const WRITES = /^(INSERT INTO|UPDATE|DELETE FROM) scrip\.(\w+)/;

/** An SQL expression for the shard of a bucket in the stand-in. Each of 16 shards has 4 buckets, without a pattern. */
export const SHARD_OF_BUCKET = '102008 + bucket * 37 % 64 / 4';

function shardOf(bucket: number): number {
  return 102_008 + Math.floor(((bucket * 37) % 64) / 4);
}

/** Whether the statement names buckets, and all of them are on one shard. A parameter is a single bucket. */
function namesOneShard(statement: string): boolean {
  const named = [...statement.matchAll(NAMED_BUCKETS)].map(([, bucket, buckets]) => bucket ?? (buckets as string));
  const shards = named.map((text) =>
    text.startsWith('$') ? text : text.split(',').map((one) => shardOf(Number(one))),
  );
  return new Set(shards.flat()).size === 1;
}

/**
 * @returns why Citus would reject the statement, or why the statement would lock or change rows of several shards; null
 * if neither
 */
export function refusalOf(statement: string): string | null {
  const text = statement.trim();
  const [, verb, table = ''] = WRITES.exec(text) ?? [];
  const isApart = namesOneShard(text);
  if (/\bAS (MATERIALIZED )?\(\s*(INSERT|UPDATE|DELETE)\b/.test(text)) return 'the statement writes in a WITH clause';
  if (verb !== undefined && VOLATILE.test(text)) return 'the statement writes and calls a volatile function';
  if (verb === 'INSERT INTO' && /\bVALUES\b.*\(\s*SELECT\b/s.test(text))
    return 'the statement has a SELECT within VALUES';
  if (text.includes('force_generic_plan')) return 'a generic plan of an INSERT with a SELECT has parameters';
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

/** Whether a statement uses more than one shard, which no statement of a batch may do. */
export function leavesItsShard(statement: string): boolean {
  return /\bscrip\.\w+/.test(statement) && !namesOneShard(statement) && !/\bVALUES \((\d+|\$1)\b/.test(statement);
}

/** The number of statements that Citus would send to the workers for a statement of an idle process. */
export function workerStatements(statement: string): number {
  if (DISTRIBUTED.some((table) => table.test(statement))) return namesOneShard(statement) ? 1 : SHARDS;
  const isReferenceChanged = WRITES.test(statement.trim()) && !/\bscrip\.clock\b/.test(statement);
  return isReferenceChanged ? WORKERS : 0;
}

const SHARDS = 16;
const WORKERS = 2;
