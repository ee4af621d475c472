// Opens a ledger for everything except serving: API keys, verification, copies, backups, exports and imports.

import type { Database } from './config.ts';
import { deriveEvents } from './events/derive.ts';
import { CannotOpen } from './store/store-fault.ts';
import type { AccountPostings } from './store/tools/account-export.ts';
import { type CopyReport, copyLedger } from './store/tools/copy.ts';
import type { CopyDestination, CopySource } from './store/tools/ledger-copy.ts';
import type { ImportTarget } from './store/tools/ledger-import.ts';
import type { BackupReport, OperatorStores, ReportProgress, ToolsOptions } from './store/tools/ledger-tools.ts';

/** Opens a ledger for a `scrip` command. Servers can use the ledger at the same time. @throws CannotOpen */
export async function openTools(database: Database, options: ToolsOptions = { create: true }): Promise<OperatorStores> {
  if (database.kind === 'file') {
    const { openSqliteTools } = await import('./store/sqlite/tools/ledger-tools.ts');
    return openSqliteTools(database.path, options);
  }
  const { openPostgresTools } = await import('./store/postgres/tools/ledger-tools.ts');
  return openPostgresTools(database, options);
}

/** Creates the folder of a ledger file, unless the folder exists. Does nothing for PostgreSQL. @throws CannotOpen */
export async function makeLedgerFolder(database: Database): Promise<void> {
  if (database.kind !== 'file') return;
  const { makeFolder } = await import('./store/sqlite/file/ledger-file.ts');
  makeFolder(database.path);
}

/** Copies a ledger into an empty one, or resumes an interrupted copy. @throws CopyStopped, CannotOpen */
export async function copyDatabase(from: Database, to: Database, report: ReportProgress): Promise<CopyReport> {
  await using opened = new AsyncDisposableStack();
  const source = opened.adopt(await openSource(from), (ledger) => ledger.close());
  return await copyInto(source, to, report);
}

/** Same as `copyDatabase`, but from a source that is already open. @throws CopyStopped, CannotOpen */
export async function copyInto(source: CopySource, to: Database, report: ReportProgress): Promise<CopyReport> {
  await using opened = new AsyncDisposableStack();
  const open = async () => opened.adopt(await openDestination(to, source.hasTestClock), (ledger) => ledger.close());
  return await copyLedger(source, open, deriveEvents, report);
}

async function openSource(database: Database): Promise<CopySource> {
  if (database.kind === 'file') {
    const { openSqliteSource } = await import('./store/sqlite/tools/copying.ts');
    return openSqliteSource(database.path);
  }
  const { openPostgresSource } = await import('./store/postgres/tools/copying.ts');
  return openPostgresSource(database);
}

async function openDestination(database: Database, testClock: boolean | null): Promise<CopyDestination> {
  if (database.kind === 'file') {
    const { openSqliteDestination } = await import('./store/sqlite/tools/copying.ts');
    return openSqliteDestination(database.path, testClock);
  }
  const { openPostgresDestination } = await import('./store/postgres/tools/copying.ts');
  return openPostgresDestination({ ...database, testClock });
}

/** @throws CannotOpen; always thrown for PostgreSQL, which has its own backup tools */
export async function backUpDatabase(database: Database, to: string, report: ReportProgress): Promise<BackupReport> {
  if (database.kind !== 'file')
    throw new CannotOpen(
      '`scrip backup` is for SQLite files only; to back up PostgreSQL, see docs/operating/backups.md.',
    );
  const { backUpFile } = await import('./store/sqlite/tools/backup.ts');
  return backUpFile(database.path, to, report);
}

/** @throws CannotOpen; always thrown for PostgreSQL */
export async function restoreDatabase(from: string, database: Database, report: ReportProgress): Promise<BackupReport> {
  if (database.kind !== 'file')
    throw new CannotOpen(
      '`scrip restore` is for SQLite files only; to restore PostgreSQL, see docs/operating/backups.md.',
    );
  const { restoreFile } = await import('./store/sqlite/tools/backup.ts');
  return restoreFile(from, database.path, report);
}

/** Opens a ledger to import grants. Servers can use the ledger at the same time. @throws CannotOpen */
export async function openImport(database: Database): Promise<ImportTarget> {
  if (database.kind === 'file') {
    const { openSqliteImport } = await import('./store/sqlite/tools/importing.ts');
    return openSqliteImport(database.path);
  }
  const { openPostgresImport } = await import('./store/postgres/tools/importing.ts');
  return openPostgresImport(database);
}

/** Opens a snapshot of all postings of an account. @throws CannotOpen */
export async function openAccountPostings(database: Database, account: string): Promise<AccountPostings> {
  if (database.kind === 'file') {
    const { openSqliteAccount } = await import('./store/sqlite/tools/account-postings.ts');
    return openSqliteAccount(database.path, account);
  }
  const { openPostgresAccount } = await import('./store/postgres/tools/account-postings.ts');
  return openPostgresAccount(database, account);
}
