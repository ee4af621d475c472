// Weakens Scrip's SQLite settings so that a control loses writes. This module can also make checkpoints more
// frequent. Load this module before all others: `NODE_OPTIONS=--import=…`.
//
//   WEAKENED_SYNCHRONOUS=NORMAL|OFF   sets `synchronous` after Scrip has checked that it is FULL
//   WEAKENED_CHECKPOINT_PAGES=60      checkpoints every 60 pages instead of every 2,000
//   WEAKENED_START=yes                when a ledger is opened, skips the checkpoint that truncates the log

import { DatabaseSync } from 'node:sqlite';

const { WEAKENED_SYNCHRONOUS: synchronous, WEAKENED_CHECKPOINT_PAGES: pages, WEAKENED_START: start } = process.env;
const { exec } = DatabaseSync.prototype;
/**
 * The number of database transactions on each connection. Scrip checks `synchronous` before the second transaction.
 */
const begun = new WeakMap<DatabaseSync, number>();

DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  if (sql.startsWith('BEGIN IMMEDIATE')) {
    const times = (begun.get(this) ?? 0) + 1;
    begun.set(this, times);
    if (synchronous && times === 2) exec.call(this, `PRAGMA synchronous = ${synchronous}`);
  }
  if (start) sql = sql.replace('PRAGMA wal_checkpoint(TRUNCATE)', '');
  exec.call(this, pages ? sql.replace(/wal_autocheckpoint = \d+/, `wal_autocheckpoint = ${pages}`) : sql);
};
