// Makes SQLite's page caches small. Loaded before all other modules (`NODE_OPTIONS=--import=…`). With large caches, the
// memory of a server would grow with its file for a long time, which would look like a leak.

import { DatabaseSync } from 'node:sqlite';

const CACHE_KIB = 4_096;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql.replace(/PRAGMA cache_size = -\d+/, `PRAGMA cache_size = -${CACHE_KIB}`));
};
