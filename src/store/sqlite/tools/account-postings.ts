// Reads an account's postings from a ledger file for an export. All reads use one snapshot. While the snapshot is
// open, the write-ahead log keeps growing.

import { CannotOpen } from '../../store-fault.ts';
import { type AccountPostings, beforeAccount, postingsOfAccount } from '../../tools/account-export.ts';
import { inBatches, rowSize } from '../../tools/ledger-row.ts';
import { connect, explained, openLedgerFile } from '../file/ledger-file.ts';
import { ledgerRowsOf } from './end-users.ts';
import { refuseMissing } from './ledger-tools.ts';

/** @throws CannotOpen if there is no ledger, or no account with that name */
export async function openSqliteAccount(file: string, name: string): Promise<AccountPostings> {
  refuseMissing(file);
  openLedgerFile(file, false).close();
  const db = connect(file);
  try {
    db.exec('BEGIN');
    const found = db.prepare('SELECT account FROM accounts WHERE name = ?').get(name);
    if (found === undefined) throw new CannotOpen(`Account ${name} does not exist; see \`scrip key list\`.`);
    const account = Number(found.account);
    const total = db.prepare('SELECT count(*) AS count FROM postings WHERE account = ?').get(account)?.count;
    const batches = () => postingsOfAccount(account, inBatches(ledgerRowsOf(db, beforeAccount(account)), rowSize));
    return { total: Number(total), batches, close: async () => db.close() };
  } catch (error) {
    db.close();
    throw explained(file, error);
  }
}
