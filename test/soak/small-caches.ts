// SQLite's page caches, of 64 MiB for each connection, made small: loaded before everything else (`NODE_OPTIONS=--import=…`).
// While they fill, which takes a ledger of more than that, a server takes more memory as its file grows, and a leak would
// not be told from that.

import { DatabaseSync } from 'node:sqlite';

const CACHE_KIB = 4_096;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql.replace(/PRAGMA cache_size = -\d+/, `PRAGMA cache_size = -${CACHE_KIB}`));
};
