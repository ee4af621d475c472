// The postings of an account in a database, for an export beside the servers that run on it. All in one snapshot: vacuum
// waits for its end.

import type { AccountPostings, ExportedPosting } from '../account-export.ts';
import { CannotOpen } from '../store.ts';
import { openPool, type PostgresOptions } from './connection.ts';
import { scanLedger } from './ledger-scan.ts';
import { refuseUnfinishedCopy, schemaState } from './migrate.ts';
import { explained } from './postgres-store.ts';

/** One for the scan, and one to spare. */
const CONNECTIONS = 2;

/** Behind every end user of the account before. */
const LAST_END_USER = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** @throws CannotOpen when there is no ledger, or no account of that name */
export async function openPostgresAccount({ url }: PostgresOptions, name: string): Promise<AccountPostings> {
  const pool = openPool(url, CONNECTIONS, { queryTimeoutMs: 0, applicationName: 'scrip export' });
  try {
    if ((await schemaState(pool)) === null)
      throw new CannotOpen('There is no ledger of this version in the database; check DATABASE_URL.');
    await refuseUnfinishedCopy(pool);
    const { rows } = await pool.query('SELECT account FROM scrip.accounts WHERE name = $1', [name]);
    const account: number | undefined = rows[0]?.account;
    if (account === undefined) throw new CannotOpen(`There is no account named ${name}; see \`scrip key list\`.`);
    const counted = await pool.query('SELECT count(*) AS total FROM scrip.postings WHERE account = $1', [account]);
    return {
      total: counted.rows[0].total,
      batches: () => batchesOf(scanLedger(pool, { account: account - 1, endUser: LAST_END_USER }), account),
      close: () => pool.end(),
    };
  } catch (error) {
    await pool.end();
    throw explained(error);
  }
}

async function* batchesOf(
  scan: ReturnType<typeof scanLedger>,
  account: number,
): AsyncGenerator<readonly ExportedPosting[]> {
  for await (const records of scan) {
    yield records.filter((record) => record.kind === 'posting' && record.user.account === account) as ExportedPosting[];
    if (records.some(({ user }) => user.account > account)) return;
  }
}
