// Authenticates console users, and changes their passwords. registration.ts creates users.

import { HOUR_MS } from '../../ledger/instant.ts';
import type { AccountDatabase, AccountQueries, AccountTables } from '../../store/account-database.ts';
import type { OutgoingMail } from './outgoing-mail.ts';
import type { PasswordHasher } from './password-hasher.ts';
import { newToken, sha256Of } from './secret-token.ts';

const RESET_MS = HOUR_MS;

type User = AccountTables['console_users'];

export interface Credentials {
  /** Normalized by `normalizedEmail`. */
  readonly email: string;
  readonly password: string;
}

export interface UsersOptions {
  readonly database: AccountDatabase;
  readonly passwords: PasswordHasher;
  readonly mail: OutgoingMail;
  readonly now: () => number;
}

export class Users {
  readonly #options: UsersOptions;

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  /**
   * Takes the same time for a wrong password and for an unknown address.
   *
   * @returns null if the address or the password is wrong
   */
  async authenticate({ email, password }: Credentials): Promise<User | null> {
    const { database, passwords } = this.#options;
    const user = await userByEmail(database.queries, email);
    const isCorrect = await passwords.verify(password, user?.password_hash);
    return user !== undefined && isCorrect ? user : null;
  }

  async hasPassword(userId: string, password: string): Promise<boolean> {
    const { database, passwords } = this.#options;
    const ofUser = database.queries.selectFrom('console_users').where('id', '=', userId);
    const user = await ofUser.select('password_hash').executeTakeFirst();
    return passwords.verify(password, user?.password_hash);
  }

  /** Looks up the user in the background, so that the response time does not reveal whether the user exists. */
  requestPasswordReset(email: string): void {
    this.#options.mail.sendLater('reset', email, async (mailer) => {
      const user = await userByEmail(this.#options.database.queries, email);
      if (user) await mailer.sendPasswordReset(email, await this.#newResetLink(user.id));
    });
  }

  /** @returns the user to whom the link was sent; null if the link is invalid */
  async userOfResetLink(token: string): Promise<{ readonly email: string; readonly accountName: string } | null> {
    const { database, now } = this.#options;
    const row = await database.queries
      .selectFrom('console_users as user')
      .innerJoin('console_password_resets as link', 'link.user_id', 'user.id')
      .leftJoin('console_members as member', 'member.user_id', 'user.id')
      .leftJoin('accounts', 'accounts.account', 'member.account')
      .select(['user.email', 'accounts.name as accountName'])
      .where('link.token_sha256', '=', sha256Of(token))
      .where('link.expires_at', '>', now())
      .executeTakeFirst();
    return row === undefined ? null : { email: row.email, accountName: row.accountName ?? '' };
  }

  /** @returns false if the link is invalid */
  async resetPassword(token: string, password: string): Promise<boolean> {
    const { database, passwords, now } = this.#options;
    const passwordHash = await passwords.hash(password);
    return database.alone(async (queries) => {
      const userId = await redeemResetLink(queries, token, now());
      if (userId !== null) await storePassword(queries, userId, passwordHash);
      return userId !== null;
    });
  }

  /** Sets the password of a user and ends all of the user's sessions. */
  async setPassword(userId: string, password: string): Promise<void> {
    const { database, passwords } = this.#options;
    const passwordHash = await passwords.hash(password);
    await database.alone((queries) => storePassword(queries, userId, passwordHash));
  }

  async idOf(email: string): Promise<string | null> {
    return (await userByEmail(this.#options.database.queries, email))?.id ?? null;
  }

  async #newResetLink(userId: string): Promise<string> {
    const { database, now } = this.#options;
    const token = newToken();
    const at = now();
    await database.queries.deleteFrom('console_password_resets').where('expires_at', '<=', at).execute();
    await database.queries
      .insertInto('console_password_resets')
      .values({ token_sha256: sha256Of(token), user_id: userId, expires_at: at + RESET_MS })
      .execute();
    return token;
  }
}

export function userByEmail(queries: AccountQueries, email: string): Promise<User | undefined> {
  return queries.selectFrom('console_users').selectAll().where('email', '=', email).executeTakeFirst();
}

async function redeemResetLink(queries: AccountQueries, token: string, now: number): Promise<string | null> {
  const link = await queries
    .deleteFrom('console_password_resets')
    .where('token_sha256', '=', sha256Of(token))
    .where('expires_at', '>', now)
    .returning('user_id')
    .executeTakeFirst();
  return link?.user_id ?? null;
}

/** Stores a new password, ends all sessions of the user, and invalidates all reset links mailed to the user. */
async function storePassword(queries: AccountQueries, id: string, passwordHash: string): Promise<void> {
  await queries.updateTable('console_users').set({ password_hash: passwordHash }).where('id', '=', id).execute();
  await queries.deleteFrom('console_sessions').where('user_id', '=', id).execute();
  await queries.deleteFrom('console_password_resets').where('user_id', '=', id).execute();
}
