// Recognizes SQL that PostgreSQL accepts and Citus rejects. The rules are taken from the planner of Citus 13
// (multi_router_planner.c and insert_select_planner.c), because the tests cannot install Citus from npm. They cover
// only SQL that Scrip might use.

import { END_USER_TABLES } from '../../../../src/store/postgres/schema/schema.ts';

const DISTRIBUTED = END_USER_TABLES.map((table) => new RegExp(`scrip\\.${table}\\b`));
const NAMES_ONE_BUCKET = /\bbucket = (\d+|\$\d+)/;
const VOLATILE =
  /\b(clock_timestamp|statement_timestamp|timeofday|random|gen_random_uuid|nextval|public\.test_clock)\b/;
const WRITES = /^(INSERT INTO|UPDATE|DELETE FROM) scrip\.(\w+)/;

/**
 * @returns why Citus would reject the statement, or why the statement would lock or change rows of several shards; null
 * if neither
 */
export function refusalOf(statement: string): string | null {
  const text = statement.trim();
  const [, verb, table = ''] = WRITES.exec(text) ?? [];
  const isApart = NAMES_ONE_BUCKET.test(text);
  if (/\bAS (MATERIALIZED )?\(\s*(INSERT|UPDATE|DELETE)\b/.test(text)) return 'the statement writes in a WITH clause';
  if (verb !== undefined && VOLATILE.test(text)) return 'the statement writes and calls a volatile function';
  if (verb === 'INSERT INTO' && /\bVALUES\b.*\(\s*SELECT\b/s.test(text))
    return 'the statement has a SELECT within VALUES';
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
  return (
    /\bscrip\.\w+/.test(statement) && !NAMES_ONE_BUCKET.test(statement) && !/\bVALUES \((\d+|\$1)\b/.test(statement)
  );
}
