// A backup of a ledger file beside the server that runs on it, and the way back. Both are written under another name,
// checked as by `scrip verify`, and only then get their own: a backup that is there is whole.

import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { CannotOpen } from '../../store-fault.ts';
import { auditSummary, type BackupReport, type ReportProgress } from '../../tools/ledger-tools.ts';
import { NewFile, OWNER_ONLY, removeDatabase, syncToDisk } from '../../tools/new-file.ts';
import {
  APPLICATION_ID,
  canonical,
  connect,
  lockLedgerFile,
  refuseOtherSchema,
  unfinishedCopy,
} from '../file/ledger-file.ts';
import { SQLITE, sqliteCode } from '../file/sqlite-error.ts';
import { auditFile } from './audit.ts';
import { refuseMissing } from './ledger-tools.ts';

/** Pages between two looks at how far it has come. 221 MB in steps of 100 and of 1,000 pages took 0.5 and 0.6 s. */
const PAGES_PER_STEP = 1_000;
const KIB = 2 ** 10;

/**
 * Writes all that is acknowledged when this is called to `to`.
 *
 * @throws CannotOpen when there is no ledger, `to` is there already, or the ledger is broken: then there is no backup
 */
export async function backUpFile(file: string, to: string, report: ReportProgress): Promise<BackupReport> {
  refuseMissing(file);
  using target = new NewFile(to);
  try {
    using ledger = connect(file);
    refuseOther(ledger, file);
    await copySnapshot(ledger, target.partial, report);
    const backedUp = await verified(target.partial, file, report);
    target.publish();
    return backedUp;
  } catch (error) {
    throw explainedFor(file, error, `The backup stopped, and ${to} was not written`);
  }
}

/**
 * Makes the ledger `file` from a backup, which stays as it is.
 *
 * @throws CannotOpen when the backup is not whole, or there is a ledger already: then nothing has changed
 */
export async function restoreFile(from: string, file: string, report: ReportProgress): Promise<BackupReport> {
  refuseNoBackup(from);
  const wasThere = existsSync(file);
  const lock = lockLedgerFile(file);
  const target = canonical(file);
  const partial = `${target}.restoring`;
  try {
    refuseLedgerAt(target);
    rmSync(partial, { force: true });
    closeSync(openSync(partial, 'wx', OWNER_ONLY));
    using source = new DatabaseSync(from, { readOnly: true });
    await copySnapshot(source, partial, report);
    const restored = await verified(partial, from, report);
    syncToDisk(partial);
    renameSync(partial, target);
    syncToDisk(dirname(target));
    return restored;
  } catch (error) {
    // The lock has made an empty file where there was none.
    if (!wasThere && existsSync(target) && statSync(target).size === 0) rmSync(target);
    throw explainedFor(from, error, `The backup was not restored, and ${file} is as it was`);
  } finally {
    removeDatabase(partial);
    lock.close();
  }
}

/**
 * SQLite's own backup, page by page, within one read transaction. Without that it begins again whenever another
 * connection writes, and under load comes to no end.
 */
async function copySnapshot(db: DatabaseSync, to: string, report: ReportProgress): Promise<void> {
  const pageKib = Number(db.prepare('PRAGMA page_size').get()?.page_size) / KIB;
  db.exec('BEGIN');
  // The snapshot is taken by the first read.
  db.prepare('SELECT count(*) FROM sqlite_schema').get();
  await backup(db, to, {
    rate: PAGES_PER_STEP,
    progress: ({ totalPages, remainingPages }) =>
      report({
        step: 'copying',
        done: Math.round((totalPages - remainingPages) * pageKib),
        total: Math.round(totalPages * pageKib),
        unit: 'KiB',
      }),
  });
}

/**
 * Checks a copy, page by page and posting by posting.
 *
 * @param origin what the operator knows it by
 * @throws CannotOpen
 */
async function verified(file: string, origin: string, report: ReportProgress): Promise<BackupReport> {
  using db = connect(file);
  refuseOther(db, origin);
  // One file, without others beside it; a server turns it back when it starts.
  db.exec('PRAGMA journal_mode = DELETE');
  const show = (done: number, total: number) => report({ step: 'verifying', done, total, unit: 'postings' });
  const { endUsers, postings, broken, example } = await auditSummary((onFinding) => auditFile(db, onFinding, show));
  show(postings, postings);
  if (broken > 0) throw damaged(origin, `in ${broken} places: ${example}`);
  const clock = db.prepare('SELECT at FROM clock').get();
  return { endUsers, postings, at: clock === undefined ? null : Number(clock.at), bytes: statSync(file).size };
}

function refuseOther(db: DatabaseSync, origin: string): void {
  const { application_id: id } = db.prepare('PRAGMA application_id').get() ?? {};
  const { user_version: schema } = db.prepare('PRAGMA user_version').get() ?? {};
  if (id !== APPLICATION_ID) throw notALedger(origin);
  refuseOtherSchema(Number(schema), origin);
  if (unfinishedCopy(db) !== null)
    throw new CannotOpen(
      `${origin} holds an unfinished copy, which is not a whole ledger; finish it with \`scrip copy\`.`,
    );
}

function refuseNoBackup(from: string): void {
  if (!existsSync(from) || !statSync(from).isFile()) throw new CannotOpen(`There is no backup at ${from}.`);
  if (sizeOf(`${from}-wal`) > 0)
    throw new CannotOpen(
      `${from} has the file ${from}-wal beside it: it is a ledger in use or one that was killed, not a backup; make one with \`scrip backup\`.`,
    );
}

/**
 * An empty file does not count: a lock or a killed restore leaves one. A log without its ledger would be replayed into the
 * new one.
 */
function refuseLedgerAt(target: string): void {
  const found = [target, `${target}-wal`, `${target}-journal`].find((name) => sizeOf(name) > 0);
  if (found === undefined) return;
  throw new CannotOpen(
    `${found} is there already; move it away, with what begins with its name, or restore elsewhere.`,
  );
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

function notALedger(origin: string): CannotOpen {
  return new CannotOpen(`${origin} is not a Scrip ledger.`);
}

function damaged(origin: string, detail: string): CannotOpen {
  return new CannotOpen(
    `${origin} is damaged (${detail.replaceAll('\n', ' ')}); use another backup, and see \`scrip verify\`.`,
  );
}

/** What is wrong with the ledger, a disk that is full or a file that may not be read, as a sentence. A bug keeps its stack. */
function explainedFor(origin: string, error: unknown, consequence: string): unknown {
  if (error instanceof CannotOpen) return error;
  const { message, syscall } = error as NodeJS.ErrnoException;
  switch (sqliteCode(error)) {
    case SQLITE.notADatabase:
      return notALedger(origin);
    case SQLITE.corrupt:
      return damaged(origin, message);
    case null:
      return typeof syscall === 'string' ? new CannotOpen(`${consequence} (${message}).`) : error;
    default:
      return new CannotOpen(`${consequence} (${message}).`);
  }
}
