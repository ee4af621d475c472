// A SQLite that is not as Scrip sets it, for controls that must lose, and with checkpoints that come more often. Loaded
// before everything else in a process and its threads: `NODE_OPTIONS=--import=…`.
//
//   WEAKENED_SYNCHRONOUS=NORMAL|OFF   after Scrip has looked, and found FULL
//   WEAKENED_CHECKPOINT_PAGES=60      instead of 16,000
//   WEAKENED_START=yes                what the log holds is not written anew when a ledger is opened

import { DatabaseSync } from 'node:sqlite';

const { WEAKENED_SYNCHRONOUS: synchronous, WEAKENED_CHECKPOINT_PAGES: pages, WEAKENED_START: start } = process.env;
const { exec } = DatabaseSync.prototype;
/** How many transactions each connection has begun: Scrip looks after the first. */
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
