// Reads an account's postings for an export, all in one snapshot. The snapshot keeps vacuum from removing dead
// rows until the export ends.

import { CannotOpen } from '../../store-fault.ts';
import { type AccountPostings, beforeAccount, postingsOfAccount } from '../../tools/account-export.ts';
import { sql } from '../pool/connection.ts';
import { APPLICATION_NAME, type PostgresOptions, toolsPool } from '../pool/connection-pool.ts';
import { openLedger } from '../schema/open-ledger.ts';
import { beginScan, ledgerRowsOf } from './ledger-scan.ts';

/** One connection for the scan, and a spare one. */
const CONNECTIONS = 2;

/** @throws CannotOpen if there is no ledger, or no account with that name */
export function openPostgresAccount(options: PostgresOptions, name: string): Promise<AccountPostings> {
  const pool = toolsPool(options, CONNECTIONS, `${APPLICATION_NAME} export`);
  return openLedger(pool, { ...options, acceptUnsafe: true, create: false }, async ({ placement }) => {
    const [found] = await pool.rows(sql('SELECT account FROM scrip.accounts WHERE name = $1', [name]));
    if (found === undefined) throw new CannotOpen(`Account ${name} does not exist; see \`scrip key list\`.`);
    const account = Number(found[0]);
    const [counted] = await pool.rows(sql('SELECT count(*) FROM scrip.postings WHERE account = $1', [account]));
    const rows = () => ledgerRowsOf(pool, beginScan(placement), { after: beforeAccount(account) });
    const batches = () => postingsOfAccount(account, rows());
    return { total: Number(counted?.[0]), batches, close: () => pool.end() };
  });
}
