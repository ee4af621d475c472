// The statements of a batch. Each is about many rows, given as arrays, one element a row. On Citus a batch is of one
// bucket, and every statement names it as a constant, so that each concerns one shard of one machine. Rows are inserted
// there by way of their end user's own row, which is on the same shard, so that this holds for INSERT … SELECT as well.

import type { QueryConfig } from 'pg';
import { BUCKETS } from './bucket.ts';

export const CYCLE = 'cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days';
export const POSTING = 'transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor, note';

export const ANSWER = 'key, request, request_id, outcome, answered_at';

export const KEY = 'bucket, account, end_user';
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
export const POSTING_TYPES = ['uuid', 'uuid', 'integer', 'text', 'bigint', 'bigint', 'bigint', 'text', 'text'] as const;

export const ANSWER_TYPES = ['text', 'text', 'text', 'text', 'bigint'] as const;
const CHAIN_TYPES = [...KEY_TYPES, 'text'];
const CHANGE_TYPES = [...KEY_TYPES, 'bigint', 'uuid', 'bigint', 'text', 'uuid'];

/**
 * Fails, and with it the whole batch, unless each row of the statement has found the one that it changes: COMMIT travels
 * with it, so the server itself has to count.
 */
const COUNTED = `SELECT 1 / (count(*) = cardinality($1::${KEY_TYPES[0]}[]))::integer FROM changed`;

const MOVEMENT = 'bucket, batch, entries';
const SPEND_TYPES = [...KEY_TYPES, 'bigint', 'uuid', 'integer', 'bigint', 'uuid', 'bigint', 'text'];

/** What time has still to renew. */
const RENEWS = `c.type = 'recurring' AND c.status = 'active'`;

export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Of the columns of its rows; what else it is given comes behind them. */
  readonly types: readonly string[];
  /** Whether the server counts, and fails unless the statement concerns one row for each of these. */
  readonly isCounted?: boolean;
}

export interface Statements extends StatementsByName {
  /** An update and an insert in one, for those who spend from one cycle each; null on Citus, which may not take it. */
  readonly spend: Statement | null;
}

type StatementsByName = Readonly<
  Record<
    | 'lock'
    | 'cycles'
    | 'answers'
    | 'addEndUsers'
    | 'updateChains'
    | 'updateCycles'
    | 'insertCycles'
    | 'insertPostings'
    | 'insertAnswers'
    | 'insertMovements'
    | 'find',
    Statement
  >
>;

/** @param bucket the one bucket of all rows, on Citus; null where a batch mixes them */
export function statementsFor(bucket: number | null): Statements {
  const within = (table: string) => (bucket === null ? '' : ` AND ${table}.bucket = ${bucket}`);
  const named = (name: string, types: readonly string[], text: string): Statement => ({
    name: bucket === null ? name : `${name}_${bucket}`,
    types,
    text,
  });
  const inserting = (name: string, table: string, columns: string, types: readonly string[]) =>
    named(
      name,
      [...KEY_TYPES, ...types],
      bucket === null
        ? insert(table, `${KEY}, ${columns}`, [...KEY_TYPES, ...types])
        : insertBeside(table, columns, types, bucket),
    );
  const update = `UPDATE scrip.cycles c SET remaining = k.remaining, status = k.status, latest = k.latest
     FROM ${unnest(CHANGE_TYPES)} AS k (${KEY}, ends_at, cycle_id, remaining, status, latest)
     WHERE ${same('c')} AND c.ends_at = k.ends_at AND c.cycle_id = k.cycle_id${within('c')}`;
  const setChains = `UPDATE scrip.end_users e SET chain = k.chain FROM ${unnest(CHAIN_TYPES)} AS k (${KEY}, chain)
     WHERE ${same('e')}${within('e')}`;
  const floor = `$${KEY_TYPES.length + 1}`;
  const keys = `${unnest(KEY_TYPES)} WITH ORDINALITY AS k (bucket, account, end_user, place)`;
  return {
    // In one total order, so that no two batches wait for each other.
    lock: named(
      'lock',
      KEY_TYPES,
      `SELECT k.place, e.chain FROM ${keys} JOIN scrip.end_users e ON ${same('e')}${within('e')}
       ORDER BY e.bucket, e.account, e.end_user FOR UPDATE OF e`,
    ),
    cycles: named(
      'cycles',
      KEY_TYPES,
      `SELECT k.place, c.latest, ${CYCLE} FROM ${keys}
       JOIN scrip.cycles c ON ${same('c')} AND c.ends_at > ${floor}${within('c')}
       UNION ALL
       SELECT k.place, c.latest, ${CYCLE} FROM ${keys}
       JOIN scrip.cycles c ON ${same('c')} AND ${RENEWS} AND c.ends_at <= ${floor}${within('c')}`,
    ),
    answers: named(
      'answers',
      [...KEY_TYPES, 'text'],
      `SELECT a.account, a.end_user, a.${ANSWER.replaceAll(', ', ', a.')}
       FROM ${unnest([...KEY_TYPES, 'text'])} AS k (${KEY}, key)
       JOIN scrip.answers a ON ${same('a')} AND a.key = k.key${within('a')}`,
    ),
    addEndUsers: named(
      'add_end_users',
      [],
      `INSERT INTO scrip.end_users (bucket, account, end_user, chain) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
    ),
    updateChains: {
      ...named('update_chains', CHAIN_TYPES, bucket === null ? counted(setChains) : setChains),
      isCounted: bucket === null,
    },
    updateCycles: {
      ...named('update_cycles', CHANGE_TYPES, bucket === null ? counted(update) : update),
      isCounted: bucket === null,
    },
    insertCycles: inserting('insert_cycles', 'cycles', `${CYCLE}, latest`, [...CYCLE_TYPES, 'uuid']),
    insertPostings: inserting('insert_postings', 'postings', POSTING, POSTING_TYPES),
    insertAnswers: inserting('insert_answers', 'answers', ANSWER, ANSWER_TYPES),
    insertMovements: named(
      'insert_movements',
      [],
      `INSERT INTO scrip.recent_movements (${MOVEMENT}) VALUES ($1, $2, $3)`,
    ),
    spend: bucket === null ? named('spend', SPEND_TYPES, SPEND) : null,
    find: named(
      'find',
      [],
      `SELECT 1 FROM scrip.postings p
       WHERE p.bucket = $1 AND p.account = $2 AND p.end_user = $3 AND p.transaction_id = $4 LIMIT 1`,
    ),
  };
}

/** The statements of each bucket, for Citus; made once, since a name stands for one text for ever. */
export function statementsByBucket(): readonly Statements[] {
  return Array.from({ length: BUCKETS }, (_, bucket) => statementsFor(bucket));
}

/** Given its rows, the instant of the batch, and the row of its movements. */
const SPEND = `
  WITH k (${KEY}, ends_at, cycle_id, period, remaining, transaction_id, amount, actor) AS MATERIALIZED (
    SELECT * FROM ${unnest(SPEND_TYPES)}
  ),
  changed AS (
    UPDATE scrip.cycles c SET remaining = k.remaining, latest = k.transaction_id FROM k
    WHERE ${same('c')} AND c.ends_at = k.ends_at AND c.cycle_id = k.cycle_id RETURNING 1
  ),
  posted AS (
    INSERT INTO scrip.postings (${KEY}, ${POSTING})
    SELECT ${KEY}, transaction_id, cycle_id, period, 'subtract', amount, $${SPEND_TYPES.length + 1}::bigint, ends_at, actor, NULL FROM k
  ),
  moved AS (
    INSERT INTO scrip.recent_movements (${MOVEMENT})
    VALUES ($${SPEND_TYPES.length + 2}, $${SPEND_TYPES.length + 3}, $${SPEND_TYPES.length + 4})
  )
  ${COUNTED}`;

export function insert(table: string, columns: string, types: readonly string[]): string {
  return `INSERT INTO scrip.${table} (${columns}) SELECT * FROM ${unnest(types)}`;
}

function counted(update: string): string {
  return `WITH changed AS (${update} RETURNING 1) ${COUNTED}`;
}

/** The same on one shard of Citus, which needs a table of that shard to select from. */
function insertBeside(table: string, columns: string, types: readonly string[], bucket: number): string {
  return `INSERT INTO scrip.${table} (${KEY}, ${columns})
     SELECT e.bucket, e.account, e.end_user, ${columns.replaceAll(/\w+/g, 'k.$&')}
     FROM ${unnest([...KEY_TYPES, ...types])} AS k (${KEY}, ${columns})
     JOIN scrip.end_users e ON ${same('e')} AND e.bucket = ${bucket}`;
}

/**
 * Shorter than the client's own timeout, so that it is the server that gives up and rolls back. A client that the server
 * hears no more of would hold its locks for hours, until TCP gives up.
 */
const TIMEOUTS = {
  statement_timeout: '4s',
  lock_timeout: '3s',
  idle_in_transaction_session_timeout: '5s',
} as const;

/**
 * Every row of a batch is found by its key. Left to itself PostgreSQL reads whole tables in a new database, which it takes
 * to be almost empty for up to a minute (6.4 ms for a batch of one among 20,000 end users, instead of 0.9), and plans
 * each small batch anew, which costs more than the batch (530 µs of the server for a batch of four).
 */
const BY_KEY = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
} as const;

const BEGIN: Statement = { name: 'begin', text: 'BEGIN', types: [] };
const SETTINGS: Statement = {
  name: 'settings',
  text: `SELECT ${Object.entries({ ...TIMEOUTS, ...BY_KEY })
    .map(([name, value]) => `set_config('${name}', '${value}', true)`)
    .join(', ')}`,
  types: [],
};
/** What Citus makes of other settings in its workers is not known. */
const SETTINGS_OF_CITUS = Object.entries(TIMEOUTS).map(
  ([name, value]): Statement => ({ name, text: `SET LOCAL ${name} = '${value}'`, types: [] }),
);

/** A COMMIT that waits for a standby must not be cut short: it would then count as done without the standby. */
const COMMIT: readonly Statement[] = [
  { name: 'no_timeout', text: 'SET LOCAL statement_timeout = 0', types: [] },
  { name: 'COMMIT', text: 'COMMIT', types: [] },
];

export function begin({ isPrepared, isCitus }: { isPrepared: boolean; isCitus: boolean }): QueryConfig[] {
  return [BEGIN, ...(isCitus ? SETTINGS_OF_CITUS : [SETTINGS])].map((statement) => query(statement, [], isPrepared));
}

export function commit(isPrepared: boolean): QueryConfig[] {
  return COMMIT.map((statement) => query(statement, [], isPrepared));
}

/** @param values for a statement about rows: those, and what comes behind them */
export function query({ name, text }: Statement, values: unknown[], isPrepared: boolean): QueryConfig {
  return isPrepared ? { name: `scrip_${name}`, text, values } : { text, values };
}

export function unnest(columnTypes: readonly string[]): string {
  return `unnest(${columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`;
}

function same(table: string): string {
  return `${table}.bucket = k.bucket AND ${table}.account = k.account AND ${table}.end_user = k.end_user`;
}
