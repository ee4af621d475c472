// Users of the console: sign-up, joining by invitation, passwords, and links sent by mail. No response reveals whether an
// email address has an account: each request computes one password hash in either case, and anything more goes by mail.
//
//   signed up or joined ──▶ unconfirmed ── mailed link and password ──▶ confirmed ──▶ removed
//
// Without a mail server, unconfirmed users can sign in. Confirming takes the password as well as the link: otherwise
// someone could sign up with your address, and you would confirm an account whose password they know.

import { randomUUID } from 'node:crypto';
import type { Role, SignUpPolicy } from '../../accounts/membership.ts';
import { DAY_MS, HOUR_MS } from '../../ledger/instant.ts';
import type { ConsoleDatabase, ConsoleQueries, ConsoleTables } from '../../store/console-database.ts';
import { createAccount, redeemInvitation } from './members.ts';
import { PasswordHasher } from './password-hasher.ts';
import { newToken, sha256Of } from './secret-token.ts';

const CONFIRMATION_MS = DAY_MS;
const RESET_MS = HOUR_MS;

type User = ConsoleTables['console_users'];
/** What a mailed link is for. Each works once and until it expires. */
type LinkPurpose = ConsoleTables['console_verifications']['purpose'];

export interface Credentials {
  /** As `normalizedEmail` returns it. */
  readonly email: string;
  readonly password: string;
}

export interface Mailer {
  sendConfirmation(email: string, token: string): Promise<void>;
  sendAlreadyRegistered(email: string): Promise<void>;
  sendPasswordReset(email: string, token: string): Promise<void>;
}

export interface UsersOptions {
  readonly database: ConsoleDatabase;
  readonly signUp: SignUpPolicy;
  /** Null without a mail server. */
  readonly mailer: Mailer | null;
  readonly now: () => number;
  /** Called when work that continues after a response fails, such as sending mail. */
  readonly onBackgroundError: (error: unknown) => void;
}

interface NewMembership {
  /** Its number, or the name for a new one. */
  readonly account: number | string;
  readonly role: Role;
}

export class Users {
  readonly #options: UsersOptions;
  readonly #passwords = new PasswordHasher();
  readonly #background = new Set<Promise<void>>();

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  async isSignUpOpen(queries = this.#options.database.queries): Promise<boolean> {
    const { signUp } = this.#options;
    if (signUp !== 'first') return signUp === 'open';
    return (await queries.selectFrom('console_users').select('id').limit(1).executeTakeFirst()) === undefined;
  }

  /**
   * Creates an account and a user who owns it, unless the address is taken.
   *
   * @returns false when sign-up is closed; true otherwise, also when the address is taken
   */
  signUp(credentials: Credentials, accountName: string): Promise<boolean> {
    return this.#register(credentials, async (queries) =>
      (await this.isSignUpOpen(queries)) ? { account: accountName, role: 'owner' } : null,
    );
  }

  /**
   * Creates a user by invitation, unless the address is taken. Either uses up the invitation.
   *
   * @returns false when the invitation is not valid; true otherwise, also when the address is taken
   */
  join(credentials: Credentials, invitationToken: string): Promise<boolean> {
    return this.#register(credentials, (queries) => redeemInvitation(queries, invitationToken, this.#options.now()));
  }

  /** @returns the id of the user; null for a wrong password, an unknown address and an unconfirmed one alike */
  async authenticate({ email, password }: Credentials): Promise<string | null> {
    const user = await userByEmail(this.#options.database.queries, email);
    const isCorrect = await this.#passwords.verify(password, user?.password_hash);
    if (user === undefined || !isCorrect) return null;
    if (this.#options.mailer === null || user.email_confirmed_at !== null) return user.id;
    this.#mailLater((mailer) => this.#sendConfirmation(mailer, user));
    return null;
  }

  async hasPassword(userId: string, password: string): Promise<boolean> {
    const user = await userById(this.#options.database.queries, userId);
    return this.#passwords.verify(password, user?.password_hash);
  }

  /** The address that a mailed link was sent to; null when the link is not valid. */
  async emailOfLink(purpose: LinkPurpose, token: string): Promise<string | null> {
    return (await this.#userOfLink(purpose, token))?.email ?? null;
  }

  /** @returns the id of the user; null when the link is not valid or the password is wrong */
  async confirmEmail(token: string, password: string): Promise<string | null> {
    const user = await this.#userOfLink('confirm-email', token);
    if (user === undefined || !(await this.#passwords.verify(password, user.password_hash))) return null;
    const { database, now } = this.#options;
    return database.alone(async (queries) => {
      const userId = await redeemLink(queries, 'confirm-email', token, now());
      if (userId !== null)
        await queries
          .updateTable('console_users')
          .set({ email_confirmed_at: now() })
          .where('id', '=', userId)
          .execute();
      return userId;
    });
  }

  /** Returns at once and looks the user up afterwards, so that the response time does not depend on the address. */
  requestPasswordReset(email: string): void {
    this.#mailLater(async (mailer) => {
      const user = await userByEmail(this.#options.database.queries, email);
      if (user) await mailer.sendPasswordReset(email, await this.#newLink('reset-password', user.id, RESET_MS));
    });
  }

  /** @returns false when the link is not valid */
  async resetPassword(token: string, password: string): Promise<boolean> {
    const passwordHash = await this.#passwords.hash(password);
    const { database, now } = this.#options;
    return database.alone(async (queries) => {
      const userId = await redeemLink(queries, 'reset-password', token, now());
      if (userId !== null) await storePassword(queries, userId, passwordHash, now());
      return userId !== null;
    });
  }

  /** Ends all sessions of the user. */
  async setPassword(userId: string, password: string): Promise<void> {
    const passwordHash = await this.#passwords.hash(password);
    const { database, now } = this.#options;
    await database.alone((queries) => storePassword(queries, userId, passwordHash, now()));
  }

  async idOf(email: string): Promise<string | null> {
    return (await userByEmail(this.#options.database.queries, email))?.id ?? null;
  }

  async backgroundWorkDone(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /** @param admit returns the membership of the new user; null to refuse */
  async #register(
    { email, password }: Credentials,
    admit: (queries: ConsoleQueries) => Promise<NewMembership | null>,
  ): Promise<boolean> {
    const passwordHash = await this.#passwords.hash(password);
    const { database, now } = this.#options;
    const isAdmitted = await database.alone(async (queries) => {
      const membership = await admit(queries);
      if (membership === null) return false;
      if ((await userByEmail(queries, email)) !== undefined) return true;
      const { account: known, role } = membership;
      const account = typeof known === 'number' ? known : await createAccount(queries, known, now());
      const user = { id: randomUUID(), email, password_hash: passwordHash, created_at: now() };
      await queries
        .insertInto('console_users')
        .values({ ...user, email_confirmed_at: null })
        .execute();
      const member = { user_id: user.id, account, role, created_at: user.created_at };
      await queries.insertInto('console_members').values(member).execute();
      return true;
    });
    if (isAdmitted) this.#mailLater((mailer) => this.#sendWelcome(mailer, email));
    return isAdmitted;
  }

  /** Says by mail what the response must not say: whether the address already had an account. */
  async #sendWelcome(mailer: Mailer, email: string): Promise<void> {
    const user = await userByEmail(this.#options.database.queries, email);
    if (user === undefined) return;
    if (user.email_confirmed_at === null) await this.#sendConfirmation(mailer, user);
    else await mailer.sendAlreadyRegistered(email);
  }

  async #sendConfirmation(mailer: Mailer, { id, email }: User): Promise<void> {
    await mailer.sendConfirmation(email, await this.#newLink('confirm-email', id, CONFIRMATION_MS));
  }

  /** @returns the token of the link; only its hash is stored */
  async #newLink(purpose: LinkPurpose, userId: string, lifetimeMs: number): Promise<string> {
    const { queries } = this.#options.database;
    const now = this.#options.now();
    const token = newToken();
    await queries.deleteFrom('console_verifications').where('expires_at', '<=', now).execute();
    await queries
      .insertInto('console_verifications')
      .values({ token_sha256: sha256Of(token), purpose, user_id: userId, expires_at: now + lifetimeMs })
      .execute();
    return token;
  }

  /** Undefined when the link is used, expired, of another purpose or unknown. */
  #userOfLink(purpose: LinkPurpose, token: string): Promise<User | undefined> {
    const { database, now } = this.#options;
    return database.queries
      .selectFrom('console_users as user')
      .innerJoin('console_verifications as link', 'link.user_id', 'user.id')
      .selectAll('user')
      .where('link.token_sha256', '=', sha256Of(token))
      .where('link.purpose', '=', purpose)
      .where('link.expires_at', '>', now())
      .executeTakeFirst();
  }

  #mailLater(send: (mailer: Mailer) => Promise<void>): void {
    const { mailer, onBackgroundError } = this.#options;
    if (mailer === null) return;
    const done = send(mailer)
      .catch(onBackgroundError)
      .finally(() => void this.#background.delete(done));
    this.#background.add(done);
  }
}

function userByEmail(queries: ConsoleQueries, email: string): Promise<User | undefined> {
  return queries.selectFrom('console_users').selectAll().where('email', '=', email).executeTakeFirst();
}

/** @returns the id of the user; null when the link is used, expired, of another purpose or unknown */
async function redeemLink(
  queries: ConsoleQueries,
  purpose: LinkPurpose,
  token: string,
  now: number,
): Promise<string | null> {
  const link = await queries
    .deleteFrom('console_verifications')
    .where('token_sha256', '=', sha256Of(token))
    .where('purpose', '=', purpose)
    .where('expires_at', '>', now)
    .returning('user_id')
    .executeTakeFirst();
  return link?.user_id ?? null;
}

function userById(queries: ConsoleQueries, id: string): Promise<User | undefined> {
  return queries.selectFrom('console_users').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Stores a new password, ends all sessions of the user and invalidates all links that were mailed to them. */
async function storePassword(queries: ConsoleQueries, id: string, passwordHash: string, now: number): Promise<void> {
  await queries
    .updateTable('console_users')
    .set({ password_hash: passwordHash, email_confirmed_at: now })
    .where('id', '=', id)
    .execute();
  await queries.deleteFrom('console_sessions').where('user_id', '=', id).execute();
  await queries.deleteFrom('console_verifications').where('user_id', '=', id).execute();
}
