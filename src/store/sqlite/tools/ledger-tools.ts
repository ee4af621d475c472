// Runs an operator's commands, such as `scrip verify`, on a ledger file that a server can use at the same time.

import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { CannotOpen } from '../../store-fault.ts';
import { LedgerDigester, type PostingsDigest } from '../../tools/ledger-digest.ts';
import type { OperatorStores, ToolsOptions } from '../../tools/ledger-tools.ts';
import { throughPosition } from '../../transaction-ids.ts';
import { explained, hasTestClock, openLedgerFile } from '../file/ledger-file.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { sqliteKeyStore } from '../reads/api-keys.ts';
import { LedgerClock, savedPosition } from '../writer/ledger-clock.ts';
import { auditFile } from './audit.ts';
import { ledgerRowsOf } from './end-users.ts';
import { resetTotals } from './totals.ts';

/** @throws CannotOpen */
export function openSqliteTools(file: string, { create, testClock = null }: ToolsOptions): OperatorStores {
  if (!create) refuseMissing(file);
  const db = openLedgerFile(file, false, testClock);
  const clock = new LedgerClock(Date.now, { isTest: hasTestClock(db) });
  return {
    tools: {
      audit: async (report) => auditFile(db, report),
      digest: async (through) => digests(db, through),
      rebuildTotals: () =>
        resetTotals(db).catch((error) => {
          throw faultOf(error);
        }),
      close: async () => db.close(),
    },
    keys: sqliteKeyStore(db, clock, async () => {}),
  };
}

/**
 * Refuses a missing or empty file. If an empty file were accepted, a ledger file that was truncated by accident would
 * be treated as a new ledger.
 *
 * @param setting the setting or option that contains the path, for the error message
 * @throws CannotOpen
 */
export function refuseMissing(file: string, setting = 'DATABASE_URL'): void {
  const size = sizeOf(file);
  if (size === undefined) throw new CannotOpen(`There is no ledger at ${file}; check ${setting}.`);
  if (size === 0)
    throw new CannotOpen(`${file} is empty and contains no ledger; check ${setting}, or restore a backup.`);
}

/** The size of the file in bytes; undefined if the file does not exist. */
function sizeOf(file: string): number | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })?.size;
  } catch (error) {
    throw explained(file, error);
  }
}

/**
 * If `through` is null, computes one digest up to the clock's saved instant and sequence number. This digest covers all
 * postings, because every batch saves its instant and sequence number.
 */
function digests(db: DatabaseSync, through: readonly TransactionId[] | null): readonly PostingsDigest[] {
  db.exec('BEGIN');
  try {
    const digester = new LedgerDigester(through ?? [throughPosition(savedPosition(db))]);
    for (const row of ledgerRowsOf(db, null, { anyInteger: true })) digester.add(row);
    return digester.digests();
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
}
