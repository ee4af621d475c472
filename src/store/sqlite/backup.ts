// A backup of a ledger file beside the server that runs on it, and the way back. Both are written under another name,
// checked as by `scrip verify`, and only then get their own: a backup that is there is whole.

import { closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, type DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import type { Finding } from '../../ledger/audit.ts';
import type { Instant } from '../../ledger/instant.ts';
import { NewFile, syncToDisk } from '../new-file.ts';
import { CannotOpen } from '../store.ts';
import {
  APPLICATION_ID,
  canonical,
  connect,
  lockLedgerFile,
  makeFolder,
  SCHEMA_LATEST,
  unfinishedCopy,
} from './ledger-file.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';
import { auditFile } from './whole-store.ts';

/** Pages between two looks at how far it has come. 221 MB in steps of 100 and of 1,000 pages took 0.5 and 0.6 s. */
const PAGES_PER_STEP = 1_000;
const CHUNK_BYTES = 4 * 2 ** 20;
const KIB = 2 ** 10;

export interface BackupProgress {
  readonly step: 'copying' | 'verifying';
  readonly done: number;
  readonly total: number;
  readonly unit: 'KiB' | 'postings';
}

export interface BackupReport {
  readonly endUsers: number;
  readonly postings: number;
  readonly bytes: number;
  /** The latest instant that the ledger had given out; null when nothing had happened in it. */
  readonly at: Instant | null;
}

type Report = (progress: BackupProgress) => void;

/**
 * Writes all that is acknowledged when this is called to `to`.
 *
 * @throws CannotOpen when there is no ledger, `to` is there already, or the ledger is broken: then there is no backup
 */
export async function backUpFile(file: string, to: string, report: Report): Promise<BackupReport> {
  if (!existsSync(file)) throw new CannotOpen(`There is no ledger at ${file}; check DATABASE_URL.`);
  const target = new NewFile(to);
  try {
    await copySnapshot(file, target.partial, report);
    const backedUp = verified(target.partial, file, report);
    target.publish();
    return backedUp;
  } catch (error) {
    throw explainedFor(file, error, `The backup stopped, and ${to} was not written`);
  } finally {
    target.discard();
  }
}

/**
 * Makes the ledger `file` from a backup, which stays as it is.
 *
 * @throws CannotOpen when the backup is not whole, or there is a ledger already: then nothing has changed
 */
export async function restoreFile(from: string, file: string, report: Report): Promise<BackupReport> {
  refuseNoBackup(from);
  makeFolder(file);
  const wasThere = existsSync(file);
  const lock = lockLedgerFile(file);
  const target = canonical(file);
  const partial = `${target}.restoring`;
  try {
    refuseLedgerAt(target);
    rmSync(partial, { force: true });
    await copyBytes(from, partial, report);
    const restored = verified(partial, from, report);
    syncToDisk(partial);
    renameSync(partial, target);
    syncToDisk(dirname(target));
    return restored;
  } catch (error) {
    // The lock has made an empty file where there was none.
    if (!wasThere && existsSync(target) && statSync(target).size === 0) rmSync(target);
    throw explainedFor(from, error, `The backup was not restored, and ${file} is as it was`);
  } finally {
    for (const name of [partial, `${partial}-journal`, `${partial}-wal`, `${partial}-shm`])
      rmSync(name, { force: true });
    lock.close();
  }
}

/**
 * SQLite's own backup, page by page, within one read transaction. Without that it begins anew whenever another
 * connection writes, and under load comes to no end.
 */
async function copySnapshot(file: string, to: string, report: Report): Promise<void> {
  const db = connect(file);
  try {
    refuseOther(db, file);
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
  } finally {
    db.close();
  }
}

async function copyBytes(from: string, to: string, report: Report): Promise<void> {
  const total = Math.ceil(statSync(from).size / KIB);
  const source = openSync(from, 'r');
  const target = openSync(to, 'wx', 0o600);
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let bytes = 0;
    for (let read = readSync(source, chunk); read > 0; read = readSync(source, chunk)) {
      for (let written = 0; written < read; ) written += writeSync(target, chunk, written, read - written);
      bytes += read;
      report({ step: 'copying', done: Math.ceil(bytes / KIB), total, unit: 'KiB' });
      await turn();
    }
    fsyncSync(target);
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

/**
 * Checks a copy, page by page and posting by posting.
 *
 * @param origin what the operator knows it by
 * @throws CannotOpen
 */
function verified(file: string, origin: string, report: Report): BackupReport {
  const db = connect(file);
  try {
    refuseOther(db, origin);
    // One file, without others beside it; a server turns it back when it starts.
    db.exec('PRAGMA journal_mode = DELETE');
    return { ...audited(db, origin, report), bytes: statSync(file).size };
  } finally {
    db.close();
  }
}

function refuseOther(db: DatabaseSync, origin: string): void {
  const { application_id: id } = db.prepare('PRAGMA application_id').get() ?? {};
  const { user_version: schema } = db.prepare('PRAGMA user_version').get() ?? {};
  if (id !== APPLICATION_ID) throw notALedger(origin);
  if (Number(schema) > SCHEMA_LATEST)
    throw new CannotOpen(
      `${origin} was written by a newer Scrip (schema ${schema}; this one knows up to ${SCHEMA_LATEST}); use that version.`,
    );
  if (unfinishedCopy(db) !== null)
    throw new CannotOpen(
      `${origin} holds an unfinished copy, which is not a whole ledger; finish it with \`scrip copy\`.`,
    );
}

function audited(db: DatabaseSync, origin: string, report: Report): Omit<BackupReport, 'bytes'> {
  let first: Finding | null = null;
  let findings = 0;
  const onFinding = (finding: Finding) => {
    first ??= finding;
    findings += 1;
  };
  const show = (done: number, total: number) => report({ step: 'verifying', done, total, unit: 'postings' });
  const { endUsers, postings, store } = auditFile(db, onFinding, show);
  show(postings, postings);
  const places = findings + store.length;
  if (places > 0) throw broken(origin, `in ${places} places: ${store[0] ?? (first as Finding | null)?.message}`);
  const clock = db.prepare('SELECT at FROM clock').get();
  return { endUsers, postings, at: clock === undefined ? null : Number(clock.at) };
}

function refuseNoBackup(from: string): void {
  if (!existsSync(from) || !statSync(from).isFile()) throw new CannotOpen(`There is no backup at ${from}.`);
  if (sizeOf(`${from}-wal`) > 0)
    throw new CannotOpen(
      `${from} has the file ${from}-wal beside it: it is a ledger in use or one that was killed, not a backup; make one with \`scrip backup\`.`,
    );
}

/** A file of no bytes is what a lock or a killed restore leaves. A log without its ledger would be played into the new one. */
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

function broken(origin: string, detail: string): CannotOpen {
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
      return broken(origin, message);
    case null:
      return typeof syscall === 'string' ? new CannotOpen(`${consequence} (${message}).`) : error;
    default:
      return new CannotOpen(`${consequence} (${message}).`);
  }
}
