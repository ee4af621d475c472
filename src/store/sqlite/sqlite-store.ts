// Opens the SQLite store: one file with one writer, and separate connections for readers.

import type { DatabaseSync } from 'node:sqlite';
import type { Stores } from '../stores.ts';
import { pendingPostingsOf } from './balances/pending-postings.ts';
import { checkPages, connect, explained, lockLedgerFile, openLedgerFile } from './file/ledger-file.ts';
import { sqliteKeyStore } from './reads/api-keys.ts';
import { SqliteConsoleStore } from './reads/console-reads.ts';
import { SqliteEventLog } from './reads/event-log.ts';
import { SqliteLedgerStore } from './reads/ledger-store.ts';
import { LedgerClock, savedPosition, type WallClock } from './writer/ledger-clock.ts';
import { ThreadedWriter, type WriterEvents, WriterInPlace } from './writer/ledger-writer.ts';
import type { WriterOptions } from './writer/writer.ts';

interface SqliteStoreOptions extends Partial<WriterOptions> {
  /** Whether the ledger must have a test clock. If true, a new ledger gets a test clock. */
  readonly testClock?: boolean;
}

/**
 * Opens the ledger for this process only, and creates it if it does not exist.
 *
 * @param wall replaces the system clock; the writer then runs in the caller's thread
 * @throws CannotOpen if another process holds the lock on the file, or if the file cannot be served: for example,
 * because it is damaged, is not a ledger, was written by a newer release, or contains an unfinished copy
 */
export async function openSqliteStore(
  file: string,
  wall?: WallClock,
  { testClock = false, ...options }: SqliteStoreOptions = {},
): Promise<Stores> {
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true, testClock);
    checkPages(db, file);
    const clock = new LedgerClock(wall ?? Date.now, { isTest: testClock });
    // If no server has used the ledger yet, its test clock starts at the machine's time.
    if (testClock && savedPosition(db).at === 0) clock.notBefore(clock.machineTime(0));
    const events: WriterEvents = {
      onTrouble: (fault) => ledger.onTrouble(fault),
      onRotations: (count) => ledger.onRotations(count),
    };
    const opening = wall
      ? new WriterInPlace(file, clock, options, events)
      : ThreadedWriter.open(file, clock, options, events);
    // While the writer thread starts and loads the pending postings into its cache, this thread loads its own copy.
    const pending = pendingPostingsOf(db);
    const writer = await opening;
    const keys = connect(file);
    const ledger = new SqliteLedgerStore(db, clock, pending, writer, [keys, lock]);
    return {
      ledger,
      keys: sqliteKeyStore(keys, clock, (ids) => writer.call('recordKeyUses', ids)),
      console: new SqliteConsoleStore(ledger),
      events: new SqliteEventLog(ledger),
      imports: ledger,
      testClock: testClock ? { now: async () => clock.now(), move: (to) => writer.call('moveClock', to) } : null,
    };
  } catch (error) {
    db?.close();
    lock.close();
    throw explained(file, error);
  }
}
