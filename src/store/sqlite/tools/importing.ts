// Imports grants into a ledger file. If no server has the file open, the import locks the file and writes to it. If a
// server has the file open, the import queues one batch at a time, and the server writes the batch.

import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Add, Outcome } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { StoreFault } from '../../store-fault.ts';
import {
  type ImportPart,
  ImportTable,
  type ImportTarget,
  type LedgerImport,
  type NewImport,
  settling,
} from '../../tools/ledger-import.ts';
import { hasTestClock, LedgerInUse, lockLedgerFile, openLedgerFile } from '../file/ledger-file.ts';
import { faultOf, sqliteCode } from '../file/sqlite-error.ts';
import { runNumbered } from '../file/statements.ts';
import { transact, withWriteLock } from '../file/write-lock.ts';
import { ImportQueue, QUEUED_MS_MAX } from '../writer/import-queue.ts';
import { LedgerClock, savedPosition, type WallClock } from '../writer/ledger-clock.ts';
import { Writer } from '../writer/writer.ts';
import { refuseMissing } from './ledger-tools.ts';

const POLL_MS = 2;

type Grant = (part: ImportPart, commands: readonly Add[]) => readonly Outcome[] | Promise<readonly Outcome[]>;

/**
 * @param wall replaces the system clock in tests
 * @throws CannotOpen if there is no ledger
 */
export function openSqliteImport(file: string, wall: WallClock = Date.now): ImportTarget {
  refuseMissing(file);
  const opened = new DisposableStack();
  try {
    const lock = lockUnlessInUse(file);
    if (lock) opened.use(lock);
    const db = opened.use(openLedgerFile(file, lock !== null));
    const clock = new LedgerClock(wall, { isTest: hasTestClock(db) });
    if (lock === null) {
      // A commit without a sync releases the write lock sooner. A power failure can then lose a queued batch, but no
      // credits that have been granted.
      db.exec('PRAGMA synchronous = NORMAL');
      return new SqliteImport(db, clock, (part, commands) => queued(db, part, commands), opened);
    }
    const writer = opened.adopt(new Writer(file, clock), (one) => one.close());
    return new SqliteImport(db, clock, (part, commands) => written(writer, part, commands), opened);
  } catch (error) {
    opened.dispose();
    throw error;
  }
}

function lockUnlessInUse(file: string): DatabaseSync | null {
  try {
    return lockLedgerFile(file, 0);
  } catch (error) {
    if (error instanceof LedgerInUse) return null;
    throw error;
  }
}

class SqliteImport implements ImportTarget {
  readonly #db: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #grant: Grant;
  readonly #opened: DisposableStack;
  readonly #table: ImportTable;
  #latest: ImportPart = { id: 0, from: 0, to: 0, at: 0 };

  constructor(db: DatabaseSync, clock: LedgerClock, grant: Grant, opened: DisposableStack) {
    this.#db = db;
    this.#clock = clock;
    this.#grant = grant;
    this.#opened = opened;
    this.#table = new ImportTable('main', async (sql, values) => {
      try {
        return runNumbered(db, sql, values);
      } catch (error) {
        throw faultOf(error);
      }
    });
  }

  async now(): Promise<Instant> {
    this.#clock.notBefore(savedPosition(this.#db).at);
    return this.#clock.peek();
  }

  /**
   * Returns the machine's time, even if the ledger has a test clock. Servers compare this time with their own, and
   * ignore a batch that has been in the queue for too long, because its import must have been killed.
   */
  async #machineTime(): Promise<Instant> {
    return this.#clock.machineTime(await this.now());
  }

  accountNamed(name: string): Promise<number | null> {
    return this.#table.accountNamed(name);
  }

  imports(account: number): Promise<readonly LedgerImport[]> {
    return this.#table.ofAccount(account);
  }

  async start(file: NewImport): Promise<LedgerImport> {
    const now = await this.#machineTime();
    return transact(this.#db, () => this.#table.start(file, now)).catch((error) => {
      throw faultOf(error);
    });
  }

  async grant(one: LedgerImport, commands: readonly Add[], rows: number): Promise<readonly Outcome[]> {
    this.#latest = { id: one.id, from: one.done, to: one.done + rows, at: await this.#machineTime() };
    try {
      return await this.#grant(this.#latest, commands);
    } catch (error) {
      throw sqliteCode(error) === null ? error : faultOf(error);
    }
  }

  async close(): Promise<void> {
    using _opened = this.#opened;
    try {
      const part = { ...this.#latest, at: await this.#machineTime() };
      withWriteLock(this.#db, () => new ImportQueue(this.#db).clear(part));
    } catch {
      // A batch that stays in the queue does no harm: servers ignore it after 10 s, and a later import removes it.
    }
  }
}

/** Stores all due events of the end users in `commands`, in as many batches as needed, and then grants the credits. */
function written(writer: Writer, part: ImportPart, commands: readonly Add[]): readonly Outcome[] {
  while (writer.write(settling(commands)).outcomes.includes(null));
  return writer.write(commands, part).outcomes as readonly Outcome[];
}

/** Queues `commands`, and waits until a server has granted the credits. */
async function queued(db: DatabaseSync, part: ImportPart, commands: readonly Add[]): Promise<readonly Outcome[]> {
  const queue = new ImportQueue(db);
  const until = performance.now() + QUEUED_MS_MAX;
  withWriteLock(db, () => queue.put({ part, commands }));
  for (;;) {
    const isLate = performance.now() > until;
    if (isLate) withWriteLock(db, () => queue.withdraw(part));
    const outcomes = queue.outcomes(part);
    if (outcomes !== null) return outcomes;
    if (isLate) throw new StoreFault('StoreUnavailable', 'no server imported the next rows within 10 seconds');
    await sleep(POLL_MS);
  }
}
