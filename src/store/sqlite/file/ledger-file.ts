// Opening a ledger file: whether it is a ledger, whether it is intact, which schema it has, and whether another process
// has it open. What is wrong is reported in one sentence, with what to do, before anything is written.

import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import { accountSchema } from '../../account-schema.ts';
import { CannotOpen } from '../../store-fault.ts';
import { syncToDisk } from '../../tools/new-file.ts';
import { ledgerSchema } from './schema.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';
import { uuidOf } from './uuid.ts';

/** In order; a released migration never changes. */
const MIGRATIONS: readonly string[] = [`${ledgerSchema}${accountSchema({ instant: 'INTEGER', options: 'STRICT' })}`];

/** The schema version that the first migration creates. Files of lower versions were made before the first release. */
const SCHEMA_FIRST = 9;

/** The schema version that this release of Scrip uses. */
export const SCHEMA_LATEST = SCHEMA_FIRST + MIGRATIONS.length - 1;

/** "Scrp", in the header of each ledger file, tells it from the files of other programs. */
export const APPLICATION_ID = 0x53637270;

const SYNCHRONOUS_FULL = 2;

/** How long to wait for another process, such as the CLI making a key, to finish its own short transaction. */
export const BUSY_TIMEOUT_MS = 5_000;

/** Files up to this size are checked page by page at start, which takes about 5 ms a MiB; larger ones by `scrip verify`. */
const START_CHECK_BYTES_MAX = 32 * 2 ** 20;

/** Locks the file for as long as the process lives: the kernel releases the lock even after a kill -9. */
export function lockLedgerFile(file: string): DatabaseSync {
  makeFolder(file);
  try {
    // Behind a dangling link, the lock would have another name once the file is there.
    if (!existsSync(file)) closeSync(openSync(file, 'a'));
    const lock = new DatabaseSync(`${canonical(file)}.lock`, { timeout: 0 });
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    if (sqliteCode(error) !== SQLITE.busy) throw explained(file, error);
    throw new CannotOpen(
      `${file} is in use by another Scrip process; stop that one first, or use PostgreSQL to run several on one ledger.`,
    );
  }
}

/**
 * Opens the file, creating and migrating it where needed.
 *
 * @param isLocked whether the caller holds the lock; else it is taken for the time of a migration, since no server may be
 * running on a file whose schema changes
 */
export function openLedgerFile(file: string, isLocked: boolean): DatabaseSync {
  makeFolder(file);
  if (existsSync(file) && !statSync(file).isFile()) throw foreign(file);
  let db: DatabaseSync | null = null;
  try {
    db = connect(file);
    refuseForeign(db, file);
    if (schemaOf(db) < SCHEMA_LATEST) {
      const lock = isLocked ? null : lockLedgerFile(file);
      migrate(db);
      lock?.close();
    }
    // A backup made by VACUUM INTO comes without it.
    if (isLocked) {
      db.exec('PRAGMA journal_mode = WAL');
      truncateLog(db);
    }
    return db;
  } catch (error) {
    db?.close();
    throw explained(file, error);
  }
}

/**
 * Checkpoints the write-ahead log into the file, and truncates it.
 *
 * After a failed fsync a kernel may mark the pages as clean. A process that starts later then reads from the page cache a
 * commit that is not on the disk and that no later fsync writes; commits behind it in the log would be lost with it in a
 * power failure. The checkpoint writes it all to the file once more. Readers beside this process, such as `scrip verify`,
 * are not waited for: the log then goes on as it is.
 */
function truncateLog(db: DatabaseSync): void {
  db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
}

/** A further connection to a file that `openLedgerFile` has found in order. */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  // FULL: a commit is on stable storage before it returns; on macOS only with fullfsync. Pages of 2 KiB cost 9 % less
  // than those of 4 KiB at 40 subtractions a commit. A checkpoint every 4 MiB of the log is short, and with the few pages
  // of a batch it costs no more than one every 32 MiB.
  db.exec(`
    PRAGMA page_size = 2048;
    PRAGMA cache_size = -16384;
    PRAGMA wal_autocheckpoint = 2000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
  `);
  return db;
}

/** Reads back, after a first commit, the settings that durability depends on: some builds of SQLite change them by then. */
export function refuseWithoutDurability(db: DatabaseSync, file: string): void {
  const synchronous = db.prepare('PRAGMA synchronous').get()?.synchronous;
  const journal = db.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (synchronous !== SYNCHRONOUS_FULL || journal !== 'wal') {
    throw new CannotOpen(
      `${file} cannot promise durability (synchronous ${synchronous}, journal ${journal}); put it on a local disk.`,
    );
  }
}

/** Reads the whole file, page by page, if it is small enough to do so at every start. */
export function checkPages(db: DatabaseSync, file: string): void {
  if (statSync(file).size > START_CHECK_BYTES_MAX) return;
  try {
    const [first] = db.prepare('PRAGMA quick_check(1)').all();
    if (first?.quick_check !== 'ok') throw damaged(file, String(first?.quick_check));
  } catch (error) {
    throw explained(file, error);
  }
}

/** The mark of a copy into this file that is not finished: its source, and the last end user that was copied. */
export function unfinishedCopy(db: DatabaseSync): { source: string; last: EndUserKey | null } | null {
  if (numberOf(db, `SELECT count(*) FROM sqlite_schema WHERE name = 'copying'`) === 0) return null;
  const row = db.prepare('SELECT source, account, end_user FROM copying').get();
  if (row === undefined) return { source: '', last: null };
  const { account, end_user: endUser } = row;
  const last = account === null ? null : { account: Number(account), endUser: uuidOf(endUser as Uint8Array) };
  return { source: String(row.source), last };
}

/** @throws CannotOpen: part of such a ledger is missing */
export function refuseUnfinishedCopy(db: DatabaseSync, file: string): void {
  if (unfinishedCopy(db) === null) return;
  throw new CannotOpen(`${file} holds an unfinished copy; run the same \`scrip copy\` again to finish it.`);
}

function migrate(db: DatabaseSync): void {
  if (schemaOf(db) === 0) db.exec('PRAGMA journal_mode = WAL');
  db.exec('BEGIN EXCLUSIVE');
  try {
    // Read again: another process may have migrated while this one waited for the lock.
    const current = schemaOf(db);
    MIGRATIONS.slice(current === 0 ? 0 : current - SCHEMA_FIRST + 1).forEach((sql) => void db.exec(sql));
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_LATEST}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function refuseForeign(db: DatabaseSync, file: string): void {
  const applicationId = numberOf(db, 'PRAGMA application_id');
  const schema = schemaOf(db);
  const isEmpty = applicationId === 0 && schema === 0 && numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0;
  if (!isEmpty && applicationId !== APPLICATION_ID) throw foreign(file);
  refuseOtherSchema(schema, file);
}

/** @throws CannotOpen for a schema that this version neither has nor can migrate */
export function refuseOtherSchema(schema: number, file: string): void {
  if (schema > SCHEMA_LATEST)
    throw new CannotOpen(
      `${file} was written by a newer Scrip (schema ${schema}; this one supports up to ${SCHEMA_LATEST}); use that version, or point DATABASE_URL elsewhere.`,
    );
  if (schema > 0 && schema < SCHEMA_FIRST)
    throw new CannotOpen(
      `${file} was written before the first release of Scrip (schema ${schema}) and cannot be read; point DATABASE_URL at another file.`,
    );
}

function schemaOf(db: DatabaseSync): number {
  return numberOf(db, 'PRAGMA user_version');
}

function numberOf(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0]);
}

function makeFolder(file: string): void {
  const folder = dirname(file);
  try {
    // The entry of a new folder is in its parent, which has to be on stable storage as well.
    if (existsSync(folder) && !statSync(folder).isDirectory()) throw new Error('there is a file of that name');
    if (!existsSync(folder)) syncToDisk(dirname(mkdirSync(folder, { recursive: true }) as string));
  } catch (error) {
    throw new CannotOpen(
      `The folder of ${file} cannot be made (${(error as Error).message}); point DATABASE_URL where Scrip may write.`,
    );
  }
}

/** One name for one file, however many links lead to it: two names would give two locks. */
export function canonical(file: string): string {
  return existsSync(file) ? realpathSync(file) : join(realpathSync(dirname(file)), basename(file));
}

/** An error about the file as a sentence that says what to do; any other error as it is. */
export function explained(file: string, error: unknown): unknown {
  if (error instanceof CannotOpen) return error;
  const { message } = error as Error;
  switch (isOfFileSystem(error) ? SQLITE.cantOpen : sqliteCode(error)) {
    case SQLITE.notADatabase:
      return foreign(file);
    case SQLITE.corrupt:
      return damaged(file, message);
    case SQLITE.busy:
      return new CannotOpen(`${file} is locked by another process (${message}); stop that one, then try again.`);
    case SQLITE.cantOpen:
    case SQLITE.readonly:
      return new CannotOpen(
        `${file} cannot be opened for writing (${message}); check that it and its folder belong to the user that runs Scrip.`,
      );
    default:
      return sqliteCode(error) === null ? error : new CannotOpen(`${file} cannot be opened: ${message}.`);
  }
}

function isOfFileSystem(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function foreign(file: string): CannotOpen {
  return new CannotOpen(`${file} is not a Scrip ledger; point DATABASE_URL at another file, and Scrip will make it.`);
}

function damaged(file: string, detail: string): CannotOpen {
  return new CannotOpen(
    `${file} is damaged (${detail.replaceAll('\n', ' ')}); restore a backup, and keep this file: parts of it may be recoverable.`,
  );
}
