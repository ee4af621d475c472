// The turn to write in a ledger file for whoever is not its writer, as another process that makes a key. While a million
// renewals are entered, the writer lets go of the file for a fraction of a millisecond each time. SQLite, told to wait, looks
// again after up to 100 ms, and would miss that for seconds.

import type { DatabaseSync } from 'node:sqlite';
import { BUSY_TIMEOUT_MS } from './ledger-file.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';

const LOOK_EVERY_MS = 0.5;

const asleep = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * Begins a transaction that writes, as soon as nobody else is in one. The thread waits meanwhile.
 *
 * @throws as SQLite does when it is still not its turn after 5 s
 */
export function beginToWrite(db: DatabaseSync): void {
  const until = performance.now() + BUSY_TIMEOUT_MS;
  db.exec('PRAGMA busy_timeout = 0');
  try {
    while (!hasBegun(db, performance.now() > until)) Atomics.wait(asleep, 0, 0, LOOK_EVERY_MS);
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

function hasBegun(db: DatabaseSync, isLast: boolean): boolean {
  try {
    db.exec('BEGIN IMMEDIATE');
    return true;
  } catch (error) {
    if (isLast || sqliteCode(error) !== SQLITE.busy) throw error;
    return false;
  }
}
