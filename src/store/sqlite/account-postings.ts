// The postings of an account in a ledger file, for an export beside the server that may run on it. All in one snapshot:
// as long as it is open, the write-ahead log grows.

import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { AccountPostings, ExportedPosting } from '../account-export.ts';
import { inBatches } from '../ledger-copy.ts';
import { CannotOpen } from '../store.ts';
import { recordsOf } from './copying.ts';
import { connect, explained, openLedgerFile, refuseUnfinishedCopy } from './ledger-file.ts';

/** Behind every end user of the account before. */
const LAST_END_USER = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** @throws CannotOpen when there is no ledger, or no account of that name */
export async function openSqliteAccount(file: string, name: string): Promise<AccountPostings> {
  if (!existsSync(file)) throw new CannotOpen(`There is no ledger at ${file}; check DATABASE_URL.`);
  openLedgerFile(file, false).close();
  const db = connect(file);
  try {
    refuseUnfinishedCopy(db, file);
    db.exec('BEGIN');
    const found = db.prepare('SELECT account FROM accounts WHERE name = ?').get(name);
    if (found === undefined) throw new CannotOpen(`There is no account named ${name}; see \`scrip key list\`.`);
    const account = Number(found.account);
    const total = db.prepare('SELECT count(*) AS count FROM postings WHERE account = ?').get(account)?.count;
    return { total: Number(total), batches: () => batchesOf(db, account), close: async () => db.close() };
  } catch (error) {
    db.close();
    throw explained(file, error);
  }
}

async function* batchesOf(db: DatabaseSync, account: number): AsyncGenerator<readonly ExportedPosting[]> {
  for (const records of inBatches(recordsOf(db, { account: account - 1, endUser: LAST_END_USER }))) {
    yield records.filter((record) => record.kind === 'posting' && record.user.account === account) as ExportedPosting[];
    if (records.some(({ user }) => user.account > account)) return;
  }
}
