// Limits SQLite's page caches, because a server that slowly fills large caches would seem to leak memory. This file
// must be loaded before all other modules (`NODE_OPTIONS=--import=…`).

import { DatabaseSync } from 'node:sqlite';

const CACHE_KIB = 4_096;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql.replace(/PRAGMA cache_size = -\d+/, `PRAGMA cache_size = -${CACHE_KIB}`));
};
