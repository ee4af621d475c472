// What Citus refuses of the SQL that PostgreSQL takes, as far as Scrip comes near it, read off how Citus plans
// (multi_router_planner.c and insert_select_planner.c of version 13): there is no Citus among what npm brings.

import { END_USER_TABLES } from '../../../../src/store/postgres/schema/schema.ts';

const DISTRIBUTED = END_USER_TABLES.map((table) => new RegExp(`scrip\\.${table}\\b`));
const NAMES_ONE_BUCKET = /\bbucket = (\d+|\$\d+)/;
const VOLATILE = /\b(clock_timestamp|statement_timestamp|timeofday|random|gen_random_uuid|nextval|test_clock)\b/;
const WRITES = /^(INSERT INTO|UPDATE|DELETE FROM) scrip\.(\w+)/;

/** @returns why Citus would refuse the statement, or send it to more than one shard though it locks or changes rows; null when it would not */
export function refusalOf(statement: string): string | null {
  const text = statement.trim();
  const [, verb, table = ''] = WRITES.exec(text) ?? [];
  const isApart = NAMES_ONE_BUCKET.test(text);
  if (/\bAS (MATERIALIZED )?\(\s*(INSERT|UPDATE|DELETE)\b/.test(text)) return 'it writes within WITH';
  if (verb !== undefined && VOLATILE.test(text)) return 'it asks for the time, or for chance, where it writes';
  if (verb === 'INSERT INTO' && /\bVALUES\b.*\(\s*SELECT\b/s.test(text)) return 'it selects within VALUES';
  if (!DISTRIBUTED.some((table) => table.test(text))) return null;
  if (/\bFOR (UPDATE|SHARE)\b/.test(text) && !isApart) return 'it locks rows of more than one shard';
  if (/\bLATERAL\b.*\bLIMIT\b/s.test(text) && !isApart) return 'it limits a subquery for each row';
  if (
    (verb === 'UPDATE' || verb === 'DELETE FROM') &&
    END_USER_TABLES.includes(table) &&
    /\b(FROM|USING|IN)\b.*\b(unnest|SELECT)\b/s.test(text.slice(12)) &&
    !isApart
  )
    return 'it changes rows of more than one shard by what it joins';
  return null;
}

/** Of a batch: it must not leave its shard. */
export function leavesItsShard(statement: string): boolean {
  return (
    /\bscrip\.\w+/.test(statement) && !NAMES_ONE_BUCKET.test(statement) && !/\bVALUES \((\d+|\$1)\b/.test(statement)
  );
}
