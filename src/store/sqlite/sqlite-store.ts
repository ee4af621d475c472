// Opens the embedded store: one SQLite file with one writer, and separate connections for readers.

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
import { SqliteSummaryKeeper } from './reads/summary-keeper.ts';
import { LedgerClock, type WallClock } from './writer/ledger-clock.ts';
import { ThreadedWriter, type WriterEvents, WriterInPlace } from './writer/ledger-writer.ts';
import type { WriterOptions } from './writer/writer.ts';

/**
 * Opens the ledger in `file` for this process only, and creates it if it does not exist.
 *
 * @param wall replaces the system clock; the writer then runs in the caller's thread
 * @throws CannotOpen if another process has the file open, or the file is from a newer release, foreign, damaged or on
 * a disk without durable writes
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
    // Meanwhile the writer's thread opens the file: both threads read the end of the journal at the same time.
    const pending = pendingPostingsOf(db);
    const writer = await opening;
    const keys = connect(file);
    const ledger = new SqliteLedgerStore(db, clock, pending, writer, [keys, lock]);
    return {
      ledger,
      keys: sqliteKeyStore(keys, clock, (ids) => writer.recordKeyUses(ids)),
      console: new SqliteConsoleStore(ledger),
      summaries: new SqliteSummaryKeeper(ledger),
      imports: ledger,
    };
  } catch (error) {
    db?.close();
    lock.close();
    throw explained(file, error);
  }
}
