// The turn to write in a ledger file for whoever is not its writer, as the console, or another process that makes a key.
// While a million renewals are entered, the writer lets go of the file for a fraction of a millisecond each time. SQLite,
// told to wait, looks again after up to 100 ms, and would miss that for seconds.

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
  inTurn(db, () => db.exec('BEGIN IMMEDIATE'));
}

/** The same for a statement that is a transaction of its own: it is run again, since one whose turn it is not does nothing. */
export function inTurn<Result>(db: DatabaseSync, run: () => Result): Result {
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
      Atomics.wait(asleep, 0, 0, LOOK_EVERY_MS);
    }
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}
