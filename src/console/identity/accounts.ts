// Finds, creates and renames accounts for the console and the command line, and checks whether an account has members.

import { randomBytes } from 'node:crypto';
import type { AccountQueries } from '../../store/account-database.ts';

/** Returns the account with the lowest number; null if the ledger has no accounts. */
export async function firstAccount(queries: AccountQueries): Promise<{ account: number; name: string } | null> {
  const row = await queries
    .selectFrom('accounts')
    .select(['account', 'name'])
    .orderBy('account')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

/** Returns null if no account has this name. */
export async function accountNamed(queries: AccountQueries, name: string): Promise<number | null> {
  const row = await queries.selectFrom('accounts').select('account').where('name', '=', name).executeTakeFirst();
  return row?.account ?? null;
}

/** @param account the account to check; all accounts if absent */
export async function hasMembers(queries: AccountQueries, account?: number): Promise<boolean> {
  let members = queries.selectFrom('console_members').select('user_id').limit(1);
  if (account !== undefined) members = members.where('account', '=', account);
  return (await members.executeTakeFirst()) !== undefined;
}

/**
 * Creates an account. If the name is taken, appends random digits, because an error would reveal that another account
 * has this name.
 */
export async function createAccount(queries: AccountQueries, name: string, now: number): Promise<number> {
  const { latest } = await queries
    .selectFrom('accounts')
    .select(({ fn }) => fn.max('account').as('latest'))
    .executeTakeFirstOrThrow();
  const account = Number(latest ?? 0) + 1;
  await queries
    .insertInto('accounts')
    .values({ account, name: await freeName(queries, name, account), created_at: now })
    .execute();
  return account;
}

/** If the name is taken, appends random digits, as for a new account. @returns the new name */
export async function renameAccount(queries: AccountQueries, account: number, wanted: string): Promise<string> {
  const name = await freeName(queries, wanted, account);
  await queries.updateTable('accounts').set({ name }).where('account', '=', account).execute();
  return name;
}

async function freeName(queries: AccountQueries, name: string, account: number): Promise<string> {
  const namesake = await accountNamed(queries, name);
  return namesake === null || namesake === account ? name : `${name} ${randomBytes(3).toString('hex')}`;
}
