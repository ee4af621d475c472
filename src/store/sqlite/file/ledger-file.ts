// Opens ledger files: refuses files that are not ledgers or have an unsupported schema, creates or migrates the schema,
// and checks the file for damage. Takes the lock that keeps a second server from opening the same file.

import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import { accountSchema } from '../../account-schema.ts';
import { CannotOpen } from '../../store-fault.ts';
import { testClockRefusal } from '../../test-clock.ts';
import { syncToDisk } from '../../tools/new-file.ts';
import { canonical, refuseLogWithoutLedger, refuseSecondName } from './file-names.ts';
import { ledgerSchema } from './schema.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';
import { numberOf } from './statements.ts';
import { uuidOf } from './uuid.ts';

/** A released migration never changes. */
const MIGRATIONS: readonly string[] = [`${ledgerSchema}${accountSchema({ instant: 'INTEGER', options: 'STRICT' })}`];

/**
 * The schema version that the first migration creates. Files with lower versions were created before the first release.
 */
const SCHEMA_FIRST = 16;

export const SCHEMA_LATEST = SCHEMA_FIRST + MIGRATIONS.length - 1;

/** "Scrp" in ASCII. Distinguishes ledger files from files of other programs. */
export const APPLICATION_ID = 0x53637270;

const SYNCHRONOUS_FULL = 2;

/** How long to wait for a short transaction of another process, such as `scrip key create`. */
export const BUSY_TIMEOUT_MS = 5_000;

/**
 * Files up to this size are checked page by page at start, which takes about 5 ms per MiB. Larger files are checked
 * only by commands such as `scrip verify`.
 */
const START_CHECK_BYTES_MAX = 32 * 2 ** 20;

/**
 * How long to wait for another process that creates or migrates the ledger. Usually, the other process needs only
 * milliseconds.
 */
const LOCK_WAIT_MS = 1_000;
const SCHEMA_RETRY_MS = 10;

const sleeping = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * Locks the file until the returned connection is closed. The kernel releases the lock if the process dies, even after
 * `kill -9`.
 *
 * @param waitMs how long to wait for a process that has the lock
 * @throws CannotOpen
 */
export function lockLedgerFile(file: string, waitMs = LOCK_WAIT_MS): DatabaseSync {
  refuseWithoutFolder(file);
  let lock: DatabaseSync | null = null;
  try {
    // Check the file first, so that no lock file appears beside the file of another program. The check is read-only,
    // so the process that gets the lock finds the log unchanged.
    refuseLogWithoutLedger(file);
    if (existsSync(file)) refuseForeignFile(file);
    // Create the file first, because the lock is named after the resolved path. If the path is a symbolic link to a
    // missing file, it resolves to another path as soon as the file exists.
    else closeSync(openSync(file, 'a'));
    lock = new DatabaseSync(`${canonical(file)}.lock`, { timeout: waitMs });
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    if (sqliteCode(error) !== SQLITE.busy) throw explained(file, error);
    throw new LedgerInUse(file);
  }
}

/**
 * Refuses the file of another program, without changing the file. Does not refuse a file with a hot journal, which a
 * power loss leaves during a write outside of WAL mode: only a connection that can write can read such a file.
 *
 * @throws CannotOpen
 */
function refuseForeignFile(file: string): void {
  try {
    connectToLedger(file, connectToRead).close();
  } catch (error) {
    if (sqliteCode((error as Error).cause) !== SQLITE.readonly) throw error;
  }
}

export class LedgerInUse extends CannotOpen {
  constructor(file: string) {
    super(
      `${file} is in use by another Scrip process; stop that process first, or use PostgreSQL to run several processes on one ledger.`,
    );
  }
}

/**
 * Opens the file, and creates or migrates it if needed.
 *
 * @param isLocked whether the caller holds the file's lock. If not, this function takes the lock before it migrates the
 * file, so that no server uses the file during the migration
 * @param testClock true if the ledger must have a test clock, false if it must not have one; null if either is
 * accepted. If true, a ledger without postings gets a test clock, and keeps it
 * @param mayBeUnfinished whether the file may be an unfinished copy, in which part of the ledger is missing
 */
export function openLedgerFile(
  file: string,
  isLocked: boolean,
  testClock: boolean | null = null,
  mayBeUnfinished = false,
): DatabaseSync {
  refuseWithoutFolder(file);
  refuseLogWithoutLedger(file);
  let db: DatabaseSync | null = null;
  try {
    db = connectToLedger(file);
    if (isLocked) migrate(db);
    else migrateAlone(db, file);
    settleClock(db, file, testClock);
    // A backup made by VACUUM INTO is not in WAL mode.
    if (isLocked) {
      db.exec('PRAGMA journal_mode = WAL');
      truncateLog(db);
    }
    if (!mayBeUnfinished) refuseUnfinishedCopy(db, file);
    return db;
  } catch (error) {
    db?.close();
    throw explained(file, error);
  }
}

/**
 * Takes the lock and migrates the file. If a server takes the lock first, the server migrates the file, and holds the
 * lock until it stops. This function therefore checks the schema version before each attempt to take the lock.
 *
 * @throws CannotOpen if the file cannot be migrated because a server of an older version of Scrip holds the lock
 */
function migrateAlone(db: DatabaseSync, file: string): void {
  const until = performance.now() + BUSY_TIMEOUT_MS;
  while (schemaOf(db) < SCHEMA_LATEST) {
    try {
      using _lock = lockLedgerFile(file, 0);
      migrate(db);
    } catch (error) {
      if (!(error instanceof LedgerInUse) || performance.now() > until) throw error;
      pauseThread(SCHEMA_RETRY_MS);
    }
  }
}

/**
 * Checkpoints the write-ahead log into the file, and truncates the log.
 *
 * After a failed fsync, the kernel can mark pages as clean even though they are not on disk. A process that starts
 * later can then read a commit that exists only in the page cache, and that no later fsync writes to disk. A power
 * failure would lose this commit and all later commits in the log. To prevent this, the checkpoint writes the pages of
 * all commits in the log to the ledger file, and syncs that file. The checkpoint does not wait for readers such as
 * `scrip verify`, so a reader can keep the log from being truncated.
 */
function truncateLog(db: DatabaseSync): void {
  db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
}

/** @throws CannotOpen if the file is neither empty nor a ledger that this version of Scrip supports */
function connectToLedger(file: string, open = connect): DatabaseSync {
  if (existsSync(file) && !statSync(file).isFile()) throw foreign(file);
  refuseSecondName(file);
  const db = open(file);
  try {
    refuseForeign(db, file);
    return db;
  } catch (error) {
    db.close();
    throw explained(file, error);
  }
}

function connectToRead(file: string): DatabaseSync {
  return new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, readOnly: true });
}

/** Opens another connection to a file that `openLedgerFile` has checked. */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  // With `synchronous = FULL`, COMMIT returns only after the commit is on stable storage; macOS also needs `fullfsync`.
  // With 40 subtractions per commit, writes take 9% less time with 2 KiB pages than with 4 KiB pages. With a checkpoint
  // after every 4 MiB of log, each checkpoint is short. Because a batch dirties few pages, these checkpoints take no
  // more time in total than checkpoints after every 32 MiB would.
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

/**
 * Checks the settings that durability depends on. Call this after the first commit: before that commit, some builds of
 * SQLite can still change the settings.
 */
export function refuseWithoutDurability(db: DatabaseSync, file: string): void {
  const synchronous = db.prepare('PRAGMA synchronous').get()?.synchronous;
  const journal = db.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (synchronous !== SYNCHRONOUS_FULL || journal !== 'wal') {
    throw new CannotOpen(
      `Commits to ${file} might not be durable (synchronous ${synchronous}, journal ${journal}); move the file to a local disk.`,
    );
  }
}

export function checkPages(db: DatabaseSync, file: string): void {
  if (statSync(file).size > START_CHECK_BYTES_MAX) return;
  try {
    const [first] = db.prepare('PRAGMA quick_check(1)').all();
    if (first?.quick_check !== 'ok') throw damaged(file, String(first?.quick_check));
  } catch (error) {
    throw explained(file, error);
  }
}

/**
 * Returns the source of an unfinished copy into this file, and the last copied end user; null if the file is not an
 * unfinished copy.
 */
export function unfinishedCopy(db: DatabaseSync): { source: string; last: EndUserKey | null } | null {
  if (numberOf(db, `SELECT count(*) FROM sqlite_schema WHERE name = 'copying'`) === 0) return null;
  const row = db.prepare('SELECT source, account, end_user FROM copying').get();
  if (row === undefined) return { source: '', last: null };
  const { account, end_user: endUser } = row;
  const last = account === null ? null : { account: Number(account), endUser: uuidOf(endUser as Uint8Array) };
  return { source: String(row.source), last };
}

function refuseUnfinishedCopy(db: DatabaseSync, file: string): void {
  if (unfinishedCopy(db) === null) return;
  throw new CannotOpen(
    `${file} contains an unfinished copy; run the same \`scrip copy\` command again to finish the copy, or delete the file if \`scrip demo\` created it.`,
  );
}

export function hasTestClock(db: DatabaseSync): boolean {
  return numberOf(db, 'SELECT count(*) FROM test_clock') === 1;
}

/**
 * If `testClock` is true, adds a test clock to a ledger without postings: `scrip key create` might have created the
 * ledger before the first `serve --test-clock`.
 */
function settleClock(db: DatabaseSync, file: string, testClock: boolean | null): void {
  if (testClock) db.exec('INSERT OR IGNORE INTO test_clock SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM postings)');
  // Read the table even if `testClock` is null, so that `openLedgerFile` reports damage to the table.
  const hasOne = hasTestClock(db);
  const refusal = testClock === null ? null : testClockRefusal(file, hasOne, testClock);
  if (refusal !== null) throw new CannotOpen(refusal);
}

function migrate(db: DatabaseSync): void {
  if (schemaOf(db) === SCHEMA_LATEST) return;
  if (schemaOf(db) === 0) db.exec('PRAGMA journal_mode = WAL');
  db.exec('BEGIN EXCLUSIVE');
  try {
    // Read the version again: another process might have migrated the ledger while this process waited for the lock.
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
  // Use one snapshot for all reads, because another process might be creating the ledger.
  db.exec('BEGIN');
  const applicationId = numberOf(db, 'PRAGMA application_id');
  const schema = schemaOf(db);
  const isEmpty = applicationId === 0 && schema === 0 && numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0;
  db.exec('COMMIT');
  if (!isEmpty && applicationId !== APPLICATION_ID) throw foreign(file);
  refuseOtherSchema(schema, file);
}

/** @throws CannotOpen if this version of Scrip neither supports the schema nor can migrate it */
export function refuseOtherSchema(schema: number, file: string): void {
  if (schema > SCHEMA_LATEST)
    throw new CannotOpen(
      `${file} was written by a newer version of Scrip (schema ${schema}; this version supports up to ${SCHEMA_LATEST}); use the newer version, or point DATABASE_URL elsewhere.`,
    );
  if (schema > 0 && schema < SCHEMA_FIRST)
    throw new CannotOpen(
      `${file} was written before the first release of Scrip (schema ${schema}) and cannot be read; point DATABASE_URL at another file.`,
    );
}

function schemaOf(db: DatabaseSync): number {
  return numberOf(db, 'PRAGMA user_version');
}

export function pauseThread(ms: number): void {
  Atomics.wait(sleeping, 0, 0, ms);
}

export function makeFolder(file: string): void {
  const folder = dirname(file);
  if (existsSync(folder)) return;
  try {
    const outermost = resolve(mkdirSync(folder, { recursive: true }) as string);
    // Sync the parent of each new folder, because the parent contains the directory entry of the new folder.
    for (let made = resolve(folder); made.length >= outermost.length; made = dirname(made)) syncToDisk(dirname(made));
  } catch (error) {
    throw new CannotOpen(
      `The folder of ${file} cannot be created (${(error as Error).message}); point DATABASE_URL at a file in a folder that Scrip can write to.`,
    );
  }
}

/** Refuses a missing folder: if its disk is not mounted, a new ledger would look as if all data were lost. */
function refuseWithoutFolder(file: string): void {
  const folder = dirname(file);
  if (existsSync(folder) && statSync(folder).isDirectory()) return;
  throw new CannotOpen(
    `The folder ${folder} does not exist: mount its disk, or add --create to create the folder for a new ledger.`,
  );
}

/** Converts an error about the file into a `CannotOpen` that says what to do; returns any other error unchanged. */
export function explained(file: string, error: unknown): unknown {
  if (error instanceof CannotOpen) return error;
  const { message } = error as Error;
  switch (isOfFileSystem(error) ? SQLITE.cantOpen : sqliteCode(error)) {
    case SQLITE.notADatabase:
      return foreign(file);
    case SQLITE.corrupt:
      return damaged(file, message);
    case SQLITE.busy:
      return new CannotOpen(`${file} is locked by another process (${message}). Stop that process, then try again.`);
    case SQLITE.cantOpen:
    case SQLITE.readonly:
      return new CannotOpen(
        `${file} cannot be opened for writing (${message}); check that the file and its folder belong to the user that runs Scrip.`,
        { cause: error },
      );
    default:
      return sqliteCode(error) === null ? error : new CannotOpen(`${file} cannot be opened: ${message}.`);
  }
}

function isOfFileSystem(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function foreign(file: string): CannotOpen {
  return new CannotOpen(`${file} is not a Scrip ledger; point DATABASE_URL at a new file, which Scrip will create.`);
}

function damaged(file: string, detail: string): CannotOpen {
  return new CannotOpen(
    `${file} is damaged (${detail.replaceAll('\n', ' ')}); restore a backup, and keep this file: parts of it may be recoverable.`,
  );
}
