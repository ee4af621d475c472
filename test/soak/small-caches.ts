// Limits the size of SQLite's page caches. With large caches, the memory of a server would grow with its database file
// for a long time, which would look like a leak. This module must be loaded before all others
// (`NODE_OPTIONS=--import=…`).

import { DatabaseSync } from 'node:sqlite';

const CACHE_KIB = 4_096;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql.replace(/PRAGMA cache_size = -\d+/, `PRAGMA cache_size = -${CACHE_KIB}`));
};
