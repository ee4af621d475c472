// Statements that begin and end transactions.

import { prepared, type Query, sql } from './connection.ts';

/**
 * Begins a transaction in which each statement sees all transactions that committed before the statement began,
 * whatever `default_transaction_isolation` is. A batch first locks the rows of its end users, and then reads their
 * states. With a snapshot from before the lock, the batch would read outdated states.
 */
export const READ_COMMITTED = 'BEGIN ISOLATION LEVEL READ COMMITTED';
export const BEGIN = sql(READ_COMMITTED);
export const COMMIT = sql('COMMIT');
export const ROLLBACK = sql('ROLLBACK');

/** Statements that change settings for the rest of the transaction. */
export function setLocal(settings: Readonly<Record<string, string | number>>): Query[] {
  return Object.entries(settings).map(([name, value]) => sql(`SET LOCAL ${name} = '${value}'`));
}

/** Begins a transaction in which all reads see the same snapshot. */
export const BEGIN_SNAPSHOT = sql('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');

/**
 * Begins a transaction whose COMMIT does not wait for a standby. Use it for writes that need not survive the loss of
 * the primary. A COMMIT that waits for a standby keeps its row locks and its connection. While no standby is connected,
 * such COMMITs would soon occupy every connection.
 */
export const BEGIN_UNPROMISED = [BEGIN, ...setLocal({ synchronous_commit: 'local', lock_timeout: '1s' })];

/** Disables the server's timeouts, for operator commands. Before PostgreSQL 17, there is no `transaction_timeout`. */
export const UNLIMITED = [
  ...setLocal({ statement_timeout: 0, idle_in_transaction_session_timeout: 0 }),
  sql(`SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'`),
];

/**
 * A timeout for transactions that take locks and consist of several steps. Without it, a process that has become
 * unreachable would keep its locks for hours, until its TCP connection times out.
 */
export const IDLE_TIMEOUT = { idle_in_transaction_session_timeout: '5s' };

/**
 * Timeouts for transactions that take locks. `lock_timeout` is shorter than `ANSWER_TIMEOUT_MS`, so that the server
 * stops waiting first. Otherwise, each retry would leave another connection that waits for the same lock.
 */
export const LOCKING_TIMEOUTS = { lock_timeout: '3s', ...IDLE_TIMEOUT };

/** Statements that begin a transaction with an exclusive lock on tables, so that only one such transaction runs. */
export function beginLocking(tables: string): Query[] {
  return [BEGIN, ...setLocal(LOCKING_TIMEOUTS), sql(`LOCK TABLE ${tables} IN EXCLUSIVE MODE`)];
}

/** The timeout for statements is shorter than `ANSWER_TIMEOUT_MS`, so that the server gives up first and rolls back. */
export const BATCH_TIMEOUTS = { statement_timeout: '4s', ...LOCKING_TIMEOUTS };

/**
 * Makes PostgreSQL look up every row of a batch by its key. By default, PostgreSQL assumes for up to a minute that the
 * tables of a new database are almost empty, and uses sequential scans: in a ledger with 20,000 end users, a batch of
 * one command took 6.4 ms instead of 0.9 ms. By default, PostgreSQL also makes a new query plan for each small batch.
 * This almost doubles the time on the server: a batch of four commands took 1,110 µs instead of 576 µs.
 */
export const BY_KEY = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
};

/**
 * Commits without a statement timeout: if a timeout ended the wait for a standby, PostgreSQL would commit without the
 * standby.
 */
export const COMMIT_BATCH = [
  prepared('no_timeout', 'SET LOCAL statement_timeout = 0')([]),
  prepared('commit', 'COMMIT')([]),
];
