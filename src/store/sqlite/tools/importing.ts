// Imports grants into a ledger file. The lock of the file is held throughout, so that no server runs on it.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { Add, Command, Outcome } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { KeyRow } from '../../sql-key-store.ts';
import {
  type ImportStep,
  ImportTable,
  type ImportTarget,
  type LedgerImport,
  moveImport,
  type NewImport,
  stepValues,
} from '../../tools/ledger-import.ts';
import { lockLedgerFile, openLedgerFile, refuseUnfinishedCopy } from '../file/ledger-file.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { LedgerClock, type WallClock } from '../writer/ledger-clock.ts';
import { Writer } from '../writer/writer.ts';
import { refuseMissing } from './ledger-tools.ts';

const MOVE = moveImport('main');

/**
 * @param wall replaces the system clock in tests
 * @throws CannotOpen if there is no ledger, or a server runs on it
 */
export function openSqliteImport(file: string, wall: WallClock = Date.now): ImportTarget {
  refuseMissing(file);
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true);
    refuseUnfinishedCopy(db, file);
    return new SqliteImport(db, lock, new LedgerClock(wall), file);
  } catch (error) {
    db?.close();
    lock.close();
    throw error;
  }
}

class SqliteImport implements ImportTarget {
  readonly #db: DatabaseSync;
  readonly #lock: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #writer: Writer;
  readonly #table: ImportTable;

  constructor(db: DatabaseSync, lock: DatabaseSync, clock: LedgerClock, file: string) {
    this.#db = db;
    this.#lock = lock;
    this.#clock = clock;
    this.#writer = new Writer(file, clock);
    this.#table = new ImportTable('main', async (sql, values) => run(db, sql, values));
  }

  async now(): Promise<Instant> {
    return this.#clock.peek();
  }

  accountNamed(name: string): Promise<number | null> {
    return this.#table.accountNamed(name);
  }

  imports(account: number): Promise<readonly LedgerImport[]> {
    return this.#table.ofAccount(account);
  }

  /** No other process can start an import, since the file is locked. */
  start(file: NewImport): Promise<LedgerImport> {
    return this.#table.start(file, this.#clock.now());
  }

  async grant(one: LedgerImport, commands: readonly Add[], rows: number): Promise<readonly Outcome[]> {
    this.#settle(commands);
    const { outcomes } = this.#writer.write(commands, (db, decided) => {
      const granted = decided.filter((outcome) => outcome?.refused === null).length;
      assert(!decided.includes(null), 'the end users have just been settled');
      move(db, { id: one.id, from: one.done, to: one.done + rows, granted, at: this.#clock.latest() });
    });
    return outcomes as readonly Outcome[];
  }

  /** Stores all due renewals of the end users, in as many batches as needed. */
  #settle(commands: readonly Command[]): void {
    const due = commands.map(({ account, endUser }) => ({ kind: 'settle', account, endUser }) as const);
    while (this.#writer.write(due).outcomes.includes(null));
  }

  async close(): Promise<void> {
    this.#writer.close();
    this.#db.close();
    this.#lock.close();
  }
}

function run(db: DatabaseSync, sql: string, values: readonly (string | number | null)[]): readonly KeyRow[] {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  try {
    return statement.all(named(values)) as unknown as readonly KeyRow[];
  } catch (error) {
    throw faultOf(error);
  }
}

function move(db: DatabaseSync, step: ImportStep): void {
  const { changes } = db.prepare(MOVE).run(named(stepValues(step)));
  assert(changes === 1, 'an import advances from its stored position');
}

function named(values: readonly (string | number | null)[]): Record<string, string | number | null> {
  return Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
}
