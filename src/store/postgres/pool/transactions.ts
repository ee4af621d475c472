// How transactions begin and end.

import { prepared, type Query, sql } from './connection.ts';

export const COMMIT = sql('COMMIT');
export const ROLLBACK = sql('ROLLBACK');

/** Settings for the rest of the transaction. */
export function setLocal(settings: Readonly<Record<string, string | number>>): Query[] {
  return Object.entries(settings).map(([name, value]) => sql(`SET LOCAL ${name} = '${value}'`));
}

/** All that is read is of the same instant. */
export const BEGIN_SNAPSHOT = sql('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');

/**
 * For what no promise depends on: without waiting for a standby. While there is none, each of these would wait in the server
 * with its rows locked and a connection of its own, until no connection was left.
 */
export const BEGIN_UNPROMISED = [sql('BEGIN'), ...setLocal({ synchronous_commit: 'local', lock_timeout: '1s' })];

/** For the work of an operator, which takes as long as it takes. */
export const UNLIMITED = setLocal({ statement_timeout: 0, idle_in_transaction_session_timeout: 0 });

/**
 * Of a batch. Shorter than the client's own timeout, so that it is the server that gives up and rolls back. A client that
 * vanished without a word would hold its locks for hours, until TCP gives up.
 */
export const BATCH_TIMEOUTS = {
  statement_timeout: '4s',
  lock_timeout: '3s',
  idle_in_transaction_session_timeout: '5s',
};

/**
 * Every row of a batch is found by its key. Left to itself PostgreSQL reads whole tables in a new database, which it takes
 * to be almost empty for up to a minute (6.4 ms for a batch of one among 20,000 end users, instead of 0.9), and plans
 * each small batch again, which costs more than the batch (530 µs of the server for a batch of four).
 */
export const BY_KEY = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
};

/** A COMMIT that waits for a standby must not be cut short: it would then count as done without the standby. */
export const COMMIT_BATCH = [
  prepared('no_timeout', 'SET LOCAL statement_timeout = 0')([]),
  prepared('commit', 'COMMIT')([]),
];
