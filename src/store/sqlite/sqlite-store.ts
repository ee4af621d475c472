// Opens the embedded store: one SQLite file, one writer, readers beside it.

import type { DatabaseSync } from 'node:sqlite';
import type { Stores } from '../stores.ts';
import {
  checkPages,
  connect,
  explained,
  lockLedgerFile,
  openLedgerFile,
  refuseUnfinishedCopy,
} from './file/ledger-file.ts';
import { sqliteKeyStore } from './reads/api-keys.ts';
import { SqliteConsoleStore } from './reads/console-reads.ts';
import { pendingPostingsOf, SqliteLedgerStore } from './reads/ledger-store.ts';
import { LedgerClock, type WallClock } from './writer/ledger-clock.ts';
import { ThreadedWriter, type WriterEvents, WriterInPlace } from './writer/ledger-writer.ts';
import type { WriterOptions } from './writer/writer.ts';

/**
 * Opens the ledger in `file` for this process alone, creating it where there is none.
 *
 * @param wall a clock other than the machine's; the writer then works in the caller's thread
 * @throws CannotOpen when another process has it, or it is newer, foreign, damaged or on a disk that cannot be trusted
 */
export async function openSqliteStore(
  file: string,
  wall?: WallClock,
  options: Partial<WriterOptions> = {},
): Promise<Stores> {
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true);
    checkPages(db, file);
    refuseUnfinishedCopy(db, file);
    const clock = new LedgerClock(wall ?? Date.now);
    const events: WriterEvents = {
      onTrouble: (fault) => ledger.onTrouble(fault),
      onRotations: (count) => ledger.onRotations(count),
    };
    const opening = wall
      ? new WriterInPlace(file, clock, options, events)
      : ThreadedWriter.open(file, clock, options, events);
    // Both threads look through the end of the journal at the same time.
    const pending = pendingPostingsOf(db);
    const writer = await opening;
    const keys = connect(file);
    const ledger = new SqliteLedgerStore(db, clock, pending, writer, [keys, lock]);
    return {
      ledger,
      keys: sqliteKeyStore(keys, clock, (ids) => writer.recordKeyUses(ids)),
      console: new SqliteConsoleStore(ledger),
    };
  } catch (error) {
    db?.close();
    lock.close();
    throw explained(file, error);
  }
}
