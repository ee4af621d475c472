// A ledger file as the source or the destination of a copy. Opening a source or destination takes the lock of the file,
// and closing it releases the lock. Servers therefore cannot open the file during the copy.

import assert from 'node:assert/strict';
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Finding } from '../../../ledger/audit.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import { CannotOpen } from '../../store-fault.ts';
import {
  COPIED_TABLE_NAMES,
  COPIED_TABLES,
  type CopiedRow,
  type CopyDestination,
  type CopySource,
  type RowCounts,
  type TableRow,
} from '../../tools/ledger-copy.ts';
import { inBatches, type LedgerRow, rowSize } from '../../tools/ledger-row.ts';
import type { AuditReport } from '../../tools/ledger-tools.ts';
import type { IdPosition } from '../../transaction-ids.ts';
import { canonical } from '../file/file-names.ts';
import {
  connect,
  explained,
  hasTestClock,
  lockLedgerFile,
  openLedgerFile,
  unfinishedCopy,
} from '../file/ledger-file.ts';
import { numberOf, prepare, type Row } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';
import { beginToWrite, transact, withWriteLock } from '../file/write-lock.ts';
import { RECORD_COLUMNS, RecordTable, recordOf } from '../idempotency/record-table.ts';
import { clockChecksum, savedPosition } from '../writer/ledger-clock.ts';
import { auditFile } from './audit.ts';
import { CopyWriter } from './copy-writer.ts';
import { endUsersOf, ledgerRowsOf } from './end-users.ts';
import { refuseMissing } from './ledger-tools.ts';
import { resetTotals } from './totals.ts';

/**
 * Opens a ledger, or a backup, without switching it to WAL mode, so that the file does not change.
 *
 * @throws CannotOpen if there is no ledger, or another process holds its lock
 */
export function openSqliteSource(file: string): CopySource {
  refuseMissing(file, '--from');
  const opened = new DisposableStack();
  try {
    const db = opened.use(openLedgerFile(file, false));
    if (!isReadOnly(file)) opened.use(lockLedgerFile(file));
    return new SqliteCopying(file, db, opened);
  } catch (error) {
    opened.dispose();
    throw explained(file, error);
  }
}

/** Whether the file is in a folder in which no server can run: the folder is not writable and contains no log. */
function isReadOnly(file: string): boolean {
  const target = canonical(file);
  if (existsSync(`${target}-wal`)) return false;
  try {
    accessSync(dirname(target), constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/**
 * @param testClock true if the ledger must have a test clock, false if it must not have one; null if either is accepted
 * @throws CannotOpen if another process holds the lock of the file
 */
export function openSqliteDestination(file: string, testClock: boolean | null = null): CopyDestination {
  const opened = new DisposableStack();
  try {
    opened.use(lockLedgerFile(file));
    return new SqliteCopying(file, opened.use(openLedgerFile(file, true, testClock, true)), opened);
  } catch (error) {
    opened.dispose();
    throw error;
  }
}

class SqliteCopying implements CopyDestination {
  readonly name: string;
  readonly hasTestClock: boolean;
  readonly #db: DatabaseSync;
  readonly #opened: DisposableStack;
  #writer: CopyWriter | null = null;

  /** @param opened what `close` closes: the connection `db`, and the lock if one was taken */
  constructor(file: string, db: DatabaseSync, opened: DisposableStack) {
    this.name = file;
    this.hasTestClock = hasTestClock(db);
    this.#db = db;
    this.#opened = opened;
  }

  async clock(): Promise<IdPosition> {
    return savedPosition(this.#db);
  }

  async counts(): Promise<RowCounts> {
    const postings = numberOf(this.#db, 'SELECT count(*) FROM postings');
    return { endUsers: endUsersOf(this.#db, null).reduce((count) => count + 1, 0), postings };
  }

  async *rows(after: EndUserKey | null): AsyncGenerator<readonly LedgerRow[]> {
    const db = connect(this.name);
    try {
      db.exec('BEGIN');
      yield* inBatches(ledgerRowsOf(db, after), rowSize);
    } finally {
      db.close();
    }
  }

  async *idempotencyRecords(): AsyncGenerator<readonly IdempotencyRecord[]> {
    const db = connect(this.name);
    try {
      const rows = prepare(
        db,
        `SELECT ${RECORD_COLUMNS} FROM idempotency_records ORDER BY account, end_user, key COLLATE BINARY`,
      );
      yield* inBatches(
        (rows.iterate() as Iterator<unknown> as IteratorObject<unknown>).map((row) => recordOf(row as Row)),
      );
    } finally {
      db.close();
    }
  }

  async loadIdempotencyRecords(records: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void> {
    beginToWrite(this.#db);
    this.#db.exec(
      'DELETE FROM idempotency_records; DELETE FROM idempotency_index; UPDATE idempotency_indexed SET record = 0',
    );
    // Sort the records, because `RecordTable.sweep` assumes that their numbers ascend with `recordedAt`. SQLite sorts
    // them on disk if they do not fit into memory.
    this.#db.exec('CREATE TEMP TABLE unsorted (recorded_at INTEGER, record TEXT)');
    const add = prepare(this.#db, 'INSERT INTO unsorted VALUES (?, ?)');
    for await (const batch of records) for (const record of batch) add.run(record.recordedAt, JSON.stringify(record));
    const sorted = prepare(this.#db, 'SELECT record FROM unsorted ORDER BY recorded_at').iterate();
    const table = new RecordTable(this.#db);
    for (const rows of inBatches(sorted)) table.insert(rows.map(([text]) => JSON.parse(text as string)));
    this.#db.exec('DROP TABLE unsorted; COMMIT');
  }

  async tableRows(): Promise<readonly TableRow[]> {
    return COPIED_TABLE_NAMES.flatMap((table) => {
      const rows = prepare(this.#db, `SELECT ${COPIED_TABLES[table]} FROM ${table}`).all();
      return rows.map((values) => ({ table, values: values as TableRow['values'] }));
    });
  }

  async loadTables(rows: readonly TableRow[]): Promise<void> {
    await transact(this.#db, async () => {
      for (const table of COPIED_TABLE_NAMES.toReversed()) this.#db.exec(`DELETE FROM ${table}`);
      for (const { table, values } of rows) {
        const parameters = values.map(() => '?').join(', ');
        this.#db.prepare(`INSERT INTO ${table} (${COPIED_TABLES[table]}) VALUES (${parameters})`).run(...values);
      }
    });
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditFile(this.#db, report);
  }

  async begin(source: string): Promise<EndUserKey | null> {
    const last = await transact(this.#db, async () => {
      const mark = unfinishedCopy(this.#db);
      if (mark === null) this.#mark(source);
      else if (mark.source !== source)
        throw new CannotOpen(
          `${this.name} contains an unfinished copy of another ledger, or of an earlier state of this source; delete the file, and copy again.`,
        );
      return mark?.last ?? null;
    });
    this.#writer = new CopyWriter(this.#db);
    return last;
  }

  async load(rows: readonly CopiedRow[]): Promise<void> {
    assert(this.#writer, '`begin` was called');
    if (rows.length === 0) return;
    if (!this.#db.isTransaction) beginToWrite(this.#db);
    for (const row of rows) {
      if (row.kind === 'transaction') this.#writer.add(row.user, row.postings);
      else this.#writer.end(row.user, row.events);
    }
  }

  async commit({ account, endUser }: EndUserKey): Promise<void> {
    assert(this.#writer, '`begin` was called');
    this.#writer.saveFlushed();
    this.#db.prepare('UPDATE copying SET account = ?, end_user = ?').run(account, bytesOf(endUser));
    this.#db.exec('COMMIT');
  }

  async moveClock({ at, sequence }: IdPosition): Promise<void> {
    const move = this.#db.prepare(
      `INSERT INTO clock (only, at, sequence, checksum) VALUES (1, ?, ?, ?)
       ON CONFLICT (only) DO UPDATE SET at = excluded.at, sequence = excluded.sequence, checksum = excluded.checksum
       WHERE (excluded.at, excluded.sequence) > (at, sequence)`,
    );
    withWriteLock(this.#db, () => move.run(at, sequence, clockChecksum(at, sequence)));
  }

  rebuildTotals(): Promise<void> {
    return resetTotals(this.#db);
  }

  async finish(): Promise<void> {
    assert(!this.#db.isTransaction, 'all loaded rows are committed');
    // If the disk is full, this checkpoint fails while the `copying` table still exists, so the copy can be resumed.
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    withWriteLock(this.#db, () => this.#db.exec('DROP TABLE copying'));
  }

  /**
   * Closing the connection rolls back all uncommitted rows. Closing the last connection to the file also checkpoints
   * the log into the file.
   */
  async close(): Promise<void> {
    this.#opened.dispose();
  }

  #mark(source: string): void {
    const isEmpty = ['accounts', 'api_keys', 'balances', 'postings', 'idempotency_records'].every(
      (table) => this.#db.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined,
    );
    if (!isEmpty)
      throw new CannotOpen(`There is already a ledger at ${this.name}; use a new file, or delete this one.`);
    this.#db.exec(
      'CREATE TABLE copying (only INTEGER PRIMARY KEY CHECK (only = 1), source TEXT NOT NULL, account INTEGER, end_user BLOB) STRICT',
    );
    this.#db.prepare('INSERT INTO copying (only, source) VALUES (1, ?)').run(source);
  }
}
