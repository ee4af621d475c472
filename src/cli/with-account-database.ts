// Opens the account tables for one command. A command has its own connections to the database, so that it can run
// alongside a server.

import { type Config, readConfig } from '../config.ts';
import { accountNamed } from '../console/identity/accounts.ts';
import { openAccountDatabase } from '../open-store.ts';
import type { AccountDatabase } from '../store/account-database.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { withLedger } from './with-ledger.ts';

/** Runs `work` on the account tables. Fails if the ledger does not exist. */
export async function withAccountDatabase(
  work: (database: AccountDatabase, config: Config) => Promise<void>,
): Promise<void> {
  const config = readConfig(process.env);
  // Open the ledger first, to check that it exists and has the current schema.
  await withLedger(async () => {
    await using database = await openAccountDatabase(config.database);
    await work(database, config);
  });
}

/** @throws CannotOpen if no account has this name */
export async function existingAccount({ queries }: AccountDatabase, name: string): Promise<number> {
  const account = await accountNamed(queries, name);
  if (account === null) throw unknownAccount(name);
  return account;
}

export function unknownAccount(name: string): CannotOpen {
  return new CannotOpen(
    `Account ${name} does not exist. Check the name: \`scrip key list\` shows the accounts that have API keys.`,
  );
}
