// A SQLite with other settings than those of Scrip, for controls that must lose writes, and with more checkpoints.
// Loaded before everything else in a process and its threads: `NODE_OPTIONS=--import=…`.
//
//   WEAKENED_SYNCHRONOUS=NORMAL|OFF   after Scrip has checked that it is FULL
//   WEAKENED_CHECKPOINT_PAGES=60      instead of 2,000
//   WEAKENED_START=yes                a start does not checkpoint and truncate the log

import { DatabaseSync } from 'node:sqlite';

const { WEAKENED_SYNCHRONOUS: synchronous, WEAKENED_CHECKPOINT_PAGES: pages, WEAKENED_START: start } = process.env;
const { exec } = DatabaseSync.prototype;
/** Transactions that each connection has begun: Scrip checks the settings after the first. */
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
