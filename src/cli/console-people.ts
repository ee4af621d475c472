// `scrip invite` and `scrip password reset`: an operator invites people to the console and resets their passwords. Most
// console modules load slowly, so each command imports them only when it runs.

import { randomBytes } from 'node:crypto';
import { type Command, Option } from 'commander';
import { SECRET_BYTES } from '../accounts/api-key.ts';
import { ROLES, type Role } from '../accounts/membership.ts';
import { type Config, type Database, databaseOf, originAt, readConfig } from '../config.ts';
import { accountNamed, hasMembers } from '../console/identity/accounts.ts';
import { openAccountDatabase } from '../open-store.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { accountName } from './keys.ts';
import { unknownAccount } from './with-account-database.ts';
import { withLedger } from './with-ledger.ts';

export function addConsolePeopleCommands(program: Command): void {
  program
    .command('invite')
    .description(
      'print a link that adds one person to an account in the console; the link works once and expires in 7 days',
    )
    .requiredOption('--account <name>', 'account to join', accountName)
    .addOption(
      new Option('--role <role>', 'role in the account; owners can also manage members')
        .choices(ROLES)
        .default('owner'),
    )
    .action(invite);
  program
    .command('password')
    .description('manage console passwords')
    .command('reset')
    .description('set a random password, print it, and sign the user out everywhere')
    .requiredOption('--email <address>', 'email address of the user')
    .action(resetPassword);
}

async function invite({ account, role }: { account: string; role: Role }): Promise<void> {
  const config = readConfig(process.env);
  await withLedger(async () => {
    const path = await invitationPath(config.database, { accountName: account, role, onlyFirst: false });
    if (path === null) throw unknownAccount(account);
    const { origin, note } = linkOrigin(config);
    process.stdout.write(
      `Invitation link to join ${account} as ${role} (works once, expires in 7 days${note}):\n${origin}${path}\n`,
    );
  });
}

/** Returns the origin of links to the console. With `PORT=0`, the origin is unknown: it is empty, and `note` says so. */
export function linkOrigin({ host, port, console: { publicUrl } }: Config): { origin: string; note: string } {
  if (publicUrl === null && port === 0)
    return { origin: '', note: '; PORT is 0, so put the address of the server before this path' };
  return { origin: publicUrl ?? originAt(host, port), note: '' };
}

/**
 * Creates an invitation to an account.
 *
 * @param options.onlyFirst whether to create the invitation only if the account has no members yet
 * @returns the path of the invitation link; null if no account has this name, or if `onlyFirst` is true and the account
 * already has members
 */
export async function invitationPath(
  database: Database,
  { accountName, role, onlyFirst }: { accountName: string; role: Role; onlyFirst: boolean },
): Promise<string | null> {
  const { Members } = await import('../console/identity/members.ts');
  await using accounts = await openAccountDatabase(database);
  const account = await accountNamed(accounts.queries, accountName);
  if (account === null || (onlyFirst && (await hasMembers(accounts.queries, account)))) return null;
  const invitation = { account, role, inviterId: null, formSha256: null };
  const created = await new Members(accounts, Date.now).invite(invitation);
  if (typeof created === 'string') throw new Error(`the invitation was not created: ${created}`);
  return `/console/join/${created.token}`;
}

async function resetPassword({ email }: { email: string }): Promise<void> {
  await withLedger(async () => {
    const password = await setRandomPassword(databaseOf(process.env), email);
    if (password === null) throw new CannotOpen(`No console user has the email address ${email}.`);
    process.stdout.write(`${email} was signed out everywhere. New password (shown only once):\n${password}\n`);
  });
}

/** @returns the new password; null if no user has this email address */
async function setRandomPassword(database: Database, email: string): Promise<string | null> {
  const [{ Users }, { OutgoingMail }, { PasswordHasher }] = await Promise.all([
    import('../console/identity/users.ts'),
    import('../console/identity/outgoing-mail.ts'),
    import('../console/identity/password-hasher.ts'),
  ]);
  await using accounts = await openAccountDatabase(database);
  const mail = new OutgoingMail(
    null,
    async () => false,
    () => {},
  );
  const users = new Users({ database: accounts, passwords: new PasswordHasher(), mail, now: Date.now });
  const userId = await users.idOf(email.trim().toLowerCase());
  if (userId === null) return null;
  const password = randomBytes(SECRET_BYTES).toString('base64url');
  await users.setPassword(userId, password);
  return password;
}
