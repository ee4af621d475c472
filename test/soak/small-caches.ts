// Makes SQLite's page caches small: loaded before everything else (`NODE_OPTIONS=--import=…`). While they fill, a
// server takes more memory as its file grows, which would look like a leak.

import { DatabaseSync } from 'node:sqlite';

const CACHE_KIB = 4_096;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql.replace(/PRAGMA cache_size = -\d+/, `PRAGMA cache_size = -${CACHE_KIB}`));
};
