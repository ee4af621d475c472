// All connections to a ledger file, except the writer's, take the write lock with these functions. A busy writer holds
// the lock most of the time, and releases it for a fraction of a millisecond after each batch. SQLite's busy handler
// waits up to 100 ms between attempts, and would miss these gaps for seconds.

import type { DatabaseSync } from 'node:sqlite';
import { BUSY_TIMEOUT_MS, pauseThread } from './ledger-file.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';

const RETRY_EVERY_MS = 0.5;

/**
 * Begins a write transaction. Blocks the thread until the lock is free.
 *
 * @throws SQLite's error if another connection still holds the lock after 5 s
 */
export function beginToWrite(db: DatabaseSync): void {
  withWriteLock(db, () => db.exec('BEGIN IMMEDIATE'));
}

/**
 * Begins a write transaction without blocking the thread.
 *
 * @returns false if another connection holds the lock
 */
export function tryToWrite(db: DatabaseSync): boolean {
  db.exec('PRAGMA busy_timeout = 0');
  try {
    db.exec('BEGIN IMMEDIATE');
    return true;
  } catch (error) {
    if (sqliteCode(error) !== SQLITE.busy) throw error;
    return false;
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

/**
 * Runs a statement that begins a transaction, or that is a complete transaction by itself. If another connection holds
 * the lock, the statement has no effect, and is retried for up to 5 s.
 */
export function withWriteLock<Result>(db: DatabaseSync, run: () => Result): Result {
  const until = performance.now() + BUSY_TIMEOUT_MS;
  db.exec('PRAGMA busy_timeout = 0');
  try {
    for (;;) {
      const isLast = performance.now() > until;
      try {
        return run();
      } catch (error) {
        if (isLast || sqliteCode(error) !== SQLITE.busy) throw error;
      }
      pauseThread(RETRY_EVERY_MS);
    }
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

/** `work` must await only promises that are already settled, so that the transaction holds the lock only briefly. */
export async function transact<Result>(db: DatabaseSync, work: () => Promise<Result>): Promise<Result> {
  beginToWrite(db);
  try {
    const result = await work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}
