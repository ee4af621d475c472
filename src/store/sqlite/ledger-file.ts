// Opening a ledger file: whose it is, whether it is whole, which schema it has, and who else has it open. Whatever is
// wrong is said in one sentence, with what to do, before anything is written.

import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { syncToDisk } from '../new-file.ts';
import { CannotOpen } from '../store.ts';
import { ledger } from './migrations/0001-ledger.ts';
import { consoleTables } from './migrations/0002-console.ts';
import { answers } from './migrations/0003-answers.ts';
import { accountReads } from './migrations/0004-account-reads.ts';
import { landmarks } from './migrations/0005-landmarks.ts';
import { chainOfAnEndUser } from './migrations/0006-chain-of-an-end-user.ts';
import { posted } from './migrations/0007-posted.ts';
import { answerSlips } from './migrations/0008-answer-slips.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';
import { uuidOf } from './uuid.ts';

/** In order; a migration that has been released never changes. */
const MIGRATIONS: readonly string[] = [
  ledger,
  consoleTables,
  answers,
  accountReads,
  landmarks,
  chainOfAnEndUser,
  posted,
  answerSlips,
];

/** The schema of this version. */
export const SCHEMA_LATEST = MIGRATIONS.length;

/** "Scrp", in the header of each ledger file, tells it from the files of other programs. */
export const APPLICATION_ID = 0x53637270;

const SYNCHRONOUS_FULL = 2;

/** How long to wait for another process, such as the CLI making a key, to finish its own short transaction. */
export const BUSY_TIMEOUT_MS = 5_000;

/** Files up to this size are checked page by page at start, which takes about 5 ms a MiB; larger ones by `scrip verify`. */
const START_CHECK_BYTES_MAX = 32 * 2 ** 20;

/** Takes the file for this process alone, for as long as the process lives: the kernel frees it even after a kill -9. */
export function lockLedgerFile(file: string): DatabaseSync {
  makeFolder(file);
  try {
    // Through a link to nothing, the name of the lock would be another once the file is there.
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
 * Opens the file, made and migrated when need be.
 *
 * @param isLocked whether the caller holds the lock; else it is taken for as long as a migration lasts, since no server
 * may be running on a file whose schema changes
 */
export function openLedgerFile(file: string, isLocked: boolean): DatabaseSync {
  makeFolder(file);
  if (existsSync(file) && !statSync(file).isFile()) throw foreign(file);
  let db: DatabaseSync | null = null;
  try {
    db = connect(file);
    refuseForeign(db, file);
    if (schemaOf(db) < MIGRATIONS.length) {
      const lock = isLocked ? null : lockLedgerFile(file);
      migrate(db);
      lock?.close();
    }
    // A backup made by VACUUM INTO comes without it.
    if (isLocked) {
      db.exec('PRAGMA journal_mode = WAL');
      emptyLog(db);
    }
    return db;
  } catch (error) {
    db?.close();
    throw explained(file, error);
  }
}

/**
 * Brings what the log holds to stable storage in the file, and begins the log again.
 *
 * After an fsync that failed, a kernel may take the pages for written, so that a process started since reads from them a
 * commit that is not on the disk, and that no later fsync brings there. Commits behind it in the log would be lost with
 * it when the power fails; in the file, all is written anew. Who reads beside this process, as `scrip verify` does, is
 * not waited for: the log then goes on as it is.
 */
function emptyLog(db: DatabaseSync): void {
  db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
}

/** A further connection to a file that `openLedgerFile` has found in order. */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  // FULL: a commit is on stable storage before it returns; on macOS only with fullfsync. Pages of 2 KiB cost 9 % less
  // than those of 4 KiB at 40 subtractions a commit. A checkpoint at each 4 MiB of the log: nobody waits long for one, and
  // with the few pages of a batch it costs no more than at each 32.
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

/** Reads back, after a first commit, what durability rests on: some builds of SQLite change it in passing. */
export function refuseWithoutDurability(db: DatabaseSync, file: string): void {
  const synchronous = db.prepare('PRAGMA synchronous').get()?.synchronous;
  const journal = db.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (synchronous !== SYNCHRONOUS_FULL || journal !== 'wal') {
    throw new CannotOpen(
      `${file} cannot promise durability (synchronous ${synchronous}, journal ${journal}); put it on a local disk.`,
    );
  }
}

/** Reads the whole file, page by page, when it is small enough to do so at every start. */
export function checkPages(db: DatabaseSync, file: string): void {
  if (statSync(file).size > START_CHECK_BYTES_MAX) return;
  try {
    const [first] = db.prepare('PRAGMA quick_check(1)').all();
    if (first?.quick_check !== 'ok') throw damaged(file, String(first?.quick_check));
  } catch (error) {
    throw explained(file, error);
  }
}

/** The mark of a copy that has begun in this file and is not finished: of what, and how far it has come. */
export function unfinishedCopy(db: DatabaseSync): { source: string; last: EndUserKey | null } | null {
  if (numberOf(db, `SELECT count(*) FROM sqlite_schema WHERE name = 'copying'`) === 0) return null;
  const row = db.prepare('SELECT source, account, end_user FROM copying').get();
  if (row === undefined) return { source: '', last: null };
  const { account, end_user: endUser } = row;
  const last = account === null ? null : { account: Number(account), endUser: uuidOf(endUser as Uint8Array) };
  return { source: String(row.source), last };
}

/** @throws CannotOpen: what is there of such a ledger is right, and part of it is missing */
export function refuseUnfinishedCopy(db: DatabaseSync, file: string): void {
  if (unfinishedCopy(db) === null) return;
  throw new CannotOpen(`${file} holds an unfinished copy; run the same \`scrip copy\` again, and it goes on.`);
}

function migrate(db: DatabaseSync): void {
  if (schemaOf(db) === 0) db.exec('PRAGMA journal_mode = WAL');
  db.exec('BEGIN EXCLUSIVE');
  try {
    // Read again: another process may have migrated while this one waited for its turn.
    const current = schemaOf(db);
    MIGRATIONS.slice(current).forEach((sql) => void db.exec(sql));
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${Math.max(current, MIGRATIONS.length)}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function refuseForeign(db: DatabaseSync, file: string): void {
  const applicationId = numberOf(db, 'PRAGMA application_id');
  const current = schemaOf(db);
  const isEmpty = applicationId === 0 && current === 0 && numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0;
  if (!isEmpty && applicationId !== APPLICATION_ID) throw foreign(file);
  if (current > MIGRATIONS.length) {
    throw new CannotOpen(
      `${file} was written by a newer Scrip (schema ${current}; this one knows up to ${MIGRATIONS.length}); start that version, or point DATABASE_URL elsewhere.`,
    );
  }
}

function schemaOf(db: DatabaseSync): number {
  return numberOf(db, 'PRAGMA user_version');
}

function numberOf(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? {})[0]);
}

export function makeFolder(file: string): void {
  const folder = dirname(file);
  try {
    // The name of a new folder is in its parent, which has to be on stable storage as well.
    if (existsSync(folder) && !statSync(folder).isDirectory()) throw new Error('there is a file of that name');
    if (!existsSync(folder)) syncToDisk(dirname(mkdirSync(folder, { recursive: true }) as string));
  } catch (error) {
    throw new CannotOpen(
      `The folder of ${file} cannot be made (${(error as Error).message}); point DATABASE_URL where Scrip may write.`,
    );
  }
}

/** One name for one file, whatever links lead to it: otherwise two names would give two locks. */
export function canonical(file: string): string {
  return existsSync(file) ? realpathSync(file) : join(realpathSync(dirname(file)), basename(file));
}

/** What went wrong with the file, as a sentence that says what to do; anything else as it is. */
export function explained(file: string, error: unknown): unknown {
  if (error instanceof CannotOpen) return error;
  const { message } = error as Error;
  switch (isOfFileSystem(error) ? SQLITE.cantOpen : sqliteCode(error)) {
    case SQLITE.notADatabase:
      return foreign(file);
    case SQLITE.corrupt:
      return damaged(file, message);
    case SQLITE.busy:
      return new CannotOpen(`${file} is kept busy by another process (${message}); stop that one, then try again.`);
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
    `${file} is damaged (${detail.replaceAll('\n', ' ')}); restore a backup, and keep this file for a look at what can be saved.`,
  );
}
