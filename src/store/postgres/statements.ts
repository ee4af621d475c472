// The statements of a batch. Each is about many rows, given as arrays, one element a row. On Citus a batch is of one
// bucket, and every statement names it as a constant, so that each concerns one shard of one machine. Rows are inserted
// by way of their end user's own row, which is on the same shard, so that this holds for INSERT … SELECT as well.

import type { QueryConfig } from 'pg';
import { BUCKETS } from './bucket.ts';

export const CYCLE = 'cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days';
export const POSTING = 'transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor';

export const KEY_TYPES = ['smallint', 'integer', 'uuid'] as const;
export const CYCLE_TYPES = [
  'uuid',
  'integer',
  'text',
  'text',
  'bigint',
  'bigint',
  'bigint',
  'bigint',
  'integer',
] as const;
export const POSTING_TYPES = ['uuid', 'uuid', 'integer', 'text', 'bigint', 'bigint', 'bigint', 'text'] as const;

export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type Statements = Readonly<
  Record<
    'lock' | 'cycles' | 'addEndUsers' | 'updateCycles' | 'insertCycles' | 'insertPostings' | 'setLatest' | 'find',
    Statement
  >
>;

/** @param bucket the one bucket of all rows, on Citus; null where a batch mixes them */
export function statementsFor(bucket: number | null): Statements {
  const within = (table: string) => (bucket === null ? '' : ` AND ${table}.bucket = ${bucket}`);
  const named = (name: string, text: string): Statement => ({
    name: bucket === null ? name : `${name}_${bucket}`,
    text,
  });
  const insertInto = (table: string, columns: string, types: readonly string[]) =>
    `INSERT INTO scrip.${table} (bucket, account, end_user, ${columns})
     SELECT e.bucket, e.account, e.end_user, ${columns}
     FROM ${unnest([...KEY_TYPES, ...types])} AS k (bucket, account, end_user, ${columns})
     JOIN scrip.end_users e ON ${same('e')}${within('e')}`;
  const due = `type = 'recurring' AND status = 'active'`;
  const after = KEY_TYPES.length + 1;
  return {
    // In one total order, so that no two batches wait for each other.
    lock: named(
      'lock',
      `SELECT e.account, e.end_user, e.latest FROM ${unnest(KEY_TYPES)} AS k (bucket, account, end_user)
       JOIN scrip.end_users e ON ${same('e')}${within('e')}
       ORDER BY e.bucket, e.account, e.end_user FOR UPDATE OF e`,
    ),
    cycles: named(
      'cycles',
      `SELECT k.account, k.end_user, ${CYCLE} FROM ${unnest(KEY_TYPES)} AS k (bucket, account, end_user)
       JOIN scrip.cycles c ON ${same('c')} AND c.ends_at > $${after}${within('c')}
       UNION ALL
       SELECT k.account, k.end_user, ${CYCLE} FROM ${unnest(KEY_TYPES)} AS k (bucket, account, end_user)
       JOIN scrip.cycles c ON ${same('c')} AND ${due} AND c.ends_at <= $${after}${within('c')}`,
    ),
    addEndUsers: named(
      'add_end_users',
      `INSERT INTO scrip.end_users (bucket, account, end_user) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
    ),
    updateCycles: named(
      'update_cycles',
      `UPDATE scrip.cycles c SET remaining = k.remaining, status = k.status
       FROM ${unnest([...KEY_TYPES, 'bigint', 'uuid', 'bigint', 'text'])}
         AS k (bucket, account, end_user, ends_at, cycle_id, remaining, status)
       WHERE ${same('c')} AND c.ends_at = k.ends_at AND c.cycle_id = k.cycle_id${within('c')}`,
    ),
    insertCycles: named('insert_cycles', insertInto('cycles', CYCLE, CYCLE_TYPES)),
    insertPostings: named('insert_postings', insertInto('postings', POSTING, POSTING_TYPES)),
    setLatest: named(
      'set_latest',
      `UPDATE scrip.end_users e SET latest = k.latest
       FROM ${unnest([...KEY_TYPES, 'uuid'])} AS k (bucket, account, end_user, latest) WHERE ${same('e')}${within('e')}`,
    ),
    find: named(
      'find',
      `SELECT 1 FROM scrip.postings p
       WHERE p.bucket = $1 AND p.account = $2 AND p.end_user = $3 AND p.transaction_id = $4 LIMIT 1`,
    ),
  };
}

/** The statements of each bucket, for Citus; made once, since a name stands for one text for ever. */
export function statementsByBucket(): readonly Statements[] {
  return Array.from({ length: BUCKETS }, (_, bucket) => statementsFor(bucket));
}

export function query({ name, text }: Statement, values: unknown[], isPrepared: boolean): QueryConfig {
  return isPrepared ? { name: `scrip_${name}`, text, values } : { text, values };
}

export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}

function same(table: string): string {
  return `${table}.bucket = k.bucket AND ${table}.account = k.account AND ${table}.end_user = k.end_user`;
}
