// Who signs up, joins, signs in, and forgets a password. Whether an address is known may not be learnt from an answer, so
// each of these computes one password hash in either case, and says the rest by mail, where there is a mail server.
//
//   sign-up ──▶ unconfirmed ──▶ confirmed ──▶ removed
//                (only with a mail server; else a new user is as good as confirmed)
//
// Confirming takes the link of the mail and the password: otherwise somebody could sign up with the address of another,
// who then confirms a password that is not theirs.

import type { SignUpPolicy } from '../../accounts/membership.ts';
import type { ConsoleDatabase, ConsoleQueries } from '../../store/console-database.ts';
import { type AuthLibrary, openAuthLibrary } from './auth-library.ts';
import { makeAccount, useInvitation } from './members.ts';
import { isSecret, newSecret } from './one-time-secret.ts';
import { PasswordHash } from './password-hash.ts';

const CONFIRMATION_MS = 86_400_000;
const RESET_MS = 3_600_000;

export const EMAIL_CHARACTERS_MAX = 254;
/** What a mail server takes: no more than the addresses that people have. */
const EMAIL = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

/** The address as it is kept, or null when it is none. */
export function emailOf(text: string): string | null {
  const email = text.trim().toLowerCase();
  return email.length <= EMAIL_CHARACTERS_MAX && EMAIL.test(email) ? email : null;
}

export interface Credentials {
  /** As `emailOf` gives it. */
  readonly email: string;
  readonly password: string;
}

export interface Letters {
  confirm(email: string, secret: string): Promise<void>;
  isThereAlready(email: string): Promise<void>;
  resetPassword(email: string, secret: string): Promise<void>;
}

export interface PeopleOptions {
  readonly database: ConsoleDatabase;
  readonly signUp: SignUpPolicy;
  /** Null without a mail server: then nobody has to confirm an address. */
  readonly letters: Letters | null;
  readonly now: () => number;
  /** Told of what went wrong behind an answer that was given already. */
  readonly onTrouble: (error: unknown) => void;
}

type User = NonNullable<Awaited<ReturnType<AuthLibrary['records']['findUserById']>>>;

export class People {
  readonly password: PasswordHash;
  readonly library: AuthLibrary;
  readonly #options: PeopleOptions;
  readonly #behind = new Set<Promise<void>>();

  static async open(options: PeopleOptions): Promise<People> {
    const password = new PasswordHash();
    return new People(options, password, await openAuthLibrary(options.database, password));
  }

  private constructor(options: PeopleOptions, password: PasswordHash, library: AuthLibrary) {
    this.#options = options;
    this.password = password;
    this.library = library;
  }

  async maySignUp(): Promise<boolean> {
    const { signUp, database } = this.#options;
    return signUp === 'open' || (signUp === 'first' && !(await hasUsers(database.queries)));
  }

  /** Makes an account with this name and its owner. False when signing up is not open; an address that is known is no secret told. */
  async signUp({ email, password }: Credentials, name: string): Promise<boolean> {
    const hash = await this.library.password.hash(password);
    const { database, signUp, now } = this.#options;
    const outcome = await this.#make(email, () =>
      database.alone(async (queries) => {
        if (signUp === 'closed' || (signUp === 'first' && (await hasUsers(queries)))) return 'closed';
        if (await hasUser(queries, email)) return 'known';
        const account = await makeAccount(queries, name, now());
        await this.#makeMember(queries, { email, hash, account, role: 'owner' });
        return 'made';
      }),
    );
    if (outcome === 'closed') return false;
    this.#tell(email, outcome);
    return true;
  }

  /** Makes a member by invitation, which is used up whether or not the address is known. False when it is no longer good. */
  async join({ email, password }: Credentials, secret: string): Promise<boolean> {
    const hash = await this.library.password.hash(password);
    const { database, now } = this.#options;
    const outcome = await this.#make(email, () =>
      database.alone(async (queries) => {
        const invitation = await useInvitation(queries, secret, now());
        if (invitation === null) return 'closed';
        if (await hasUser(queries, email)) return 'known';
        await this.#makeMember(queries, { email, hash, ...invitation });
        return 'made';
      }),
    );
    if (outcome === 'closed') return false;
    this.#tell(email, outcome);
    return true;
  }

  /** The id of the user who may come in; null for a wrong password, an unknown address and an unconfirmed one alike. */
  async authenticate({ email, password }: Credentials): Promise<string | null> {
    const user = await this.#withPassword(email, password);
    if (user === null) return null;
    if (this.#options.letters && !user.emailVerified) {
      this.#tell(email, 'made');
      return null;
    }
    return user.id;
  }

  /** The same for a user who is known, such as one who is signed in. */
  async hasPassword(userId: string, password: string): Promise<boolean> {
    const credential = await this.library.records.findCredentialAccount(userId);
    return this.#verify(password, credential?.password);
  }

  /** Whose link this is; null when it is no longer good. */
  async emailOfLink(kind: 'confirm' | 'reset', secret: string): Promise<string | null> {
    const user = await this.#ofLink(kind, secret);
    return user?.email ?? null;
  }

  /** The id of the user whose address this confirms. */
  async confirm(secret: string, password: string): Promise<string | null> {
    const user = await this.#ofLink('confirm', secret);
    const { records } = this.library;
    if (user === null || !(await this.hasPassword(user.id, password))) return null;
    if ((await records.consumeVerificationValue(`confirm:${secret}`)) === null) return null;
    await records.updateUser(user.id, { emailVerified: true });
    return user.id;
  }

  /** Answers at once, and looks for the user afterwards. */
  requestReset(email: string): void {
    this.#later(async () => {
      const found = await this.library.records.findUserByEmail(email);
      if (found) await this.#options.letters?.resetPassword(email, await this.#link('reset', found.user.id, RESET_MS));
    });
  }

  /** False when the link is no longer good. It came by mail, so the address is confirmed with it. */
  async resetPassword(secret: string, password: string): Promise<boolean> {
    if (!isSecret(secret)) return false;
    const link = await this.library.records.consumeVerificationValue(`reset:${secret}`);
    if (link === null) return false;
    await this.setPassword(link.value, password);
    return true;
  }

  /** Ends all sessions of the user. */
  async setPassword(userId: string, password: string): Promise<void> {
    const { records } = this.library;
    await records.updatePassword(userId, await this.library.password.hash(password));
    await records.updateUser(userId, { emailVerified: true });
    await records.deleteUserSessions(userId);
  }

  async userIdOf(email: string): Promise<string | null> {
    const found = await this.library.records.findUserByEmail(email);
    return found?.user.id ?? null;
  }

  /** Waits for what is still done behind answers. */
  async settled(): Promise<void> {
    while (this.#behind.size > 0) await Promise.all(this.#behind);
  }

  /** Without the library's joins, which print what fails to standard error, with the address. */
  async #withPassword(email: string, password: string): Promise<User | null> {
    const found = await this.library.records.findUserByEmail(email);
    const isRight = await this.hasPassword(found?.user.id ?? '', password);
    return isRight ? (found?.user ?? null) : null;
  }

  /** Takes as long where there is nothing to compare with. */
  async #verify(password: string, hash: string | null | undefined): Promise<boolean> {
    if (hash) return this.library.password.verify({ password, hash });
    await this.library.password.hash(password);
    return false;
  }

  async #makeMember(
    queries: ConsoleQueries,
    { email, hash, account, role }: { email: string; hash: string; account: number; role: 'owner' | 'member' },
  ): Promise<void> {
    const at = new Date(this.#options.now());
    const records = this.library.within(queries);
    const stamps = { createdAt: at, updatedAt: at };
    const user = await records.create({ model: 'user', data: { email, name: '', emailVerified: false, ...stamps } });
    const credential = { userId: user.id, providerId: 'credential', accountId: user.id, password: hash, ...stamps };
    await records.create({ model: 'account', data: credential });
    await queries
      .insertInto('console_members')
      .values({ user_id: user.id, account, role, created_at: at.getTime() })
      .execute();
  }

  /** Two at once with the same address: whoever comes second finds it known. */
  async #make<Outcome extends string>(email: string, make: () => Promise<Outcome>): Promise<Outcome | 'known'> {
    try {
      return await make();
    } catch (error) {
      if (await hasUser(this.#options.database.queries, email)) return 'known';
      throw error;
    }
  }

  /** By mail, what the answer must not say. */
  #tell(email: string, outcome: 'made' | 'known'): void {
    const { letters } = this.#options;
    if (letters === null) return;
    this.#later(async () => {
      const found = await this.library.records.findUserByEmail(email);
      if (!found) return;
      const { id, emailVerified } = found.user;
      if (outcome === 'known' && emailVerified) await letters.isThereAlready(email);
      else await letters.confirm(email, await this.#link('confirm', id, CONFIRMATION_MS));
    });
  }

  async #link(kind: 'confirm' | 'reset', userId: string, lifetimeMs: number): Promise<string> {
    const secret = newSecret();
    const expiresAt = new Date(Date.now() + lifetimeMs);
    await this.library.records.createVerificationValue({ identifier: `${kind}:${secret}`, value: userId, expiresAt });
    return secret;
  }

  async #ofLink(kind: 'confirm' | 'reset', secret: string): Promise<User | null> {
    if (!isSecret(secret)) return null;
    const link = await this.library.records.findVerificationValue(`${kind}:${secret}`);
    if (link === null || link.expiresAt.getTime() <= Date.now()) return null;
    return this.library.records.findUserById(link.value);
  }

  #later(work: () => Promise<void>): void {
    const done = work()
      .catch(this.#options.onTrouble)
      .finally(() => void this.#behind.delete(done));
    this.#behind.add(done);
  }
}

async function hasUsers(queries: ConsoleQueries): Promise<boolean> {
  return (await queries.selectFrom('console_users').select('id').limit(1).executeTakeFirst()) !== undefined;
}

async function hasUser(queries: ConsoleQueries, email: string): Promise<boolean> {
  const row = await queries.selectFrom('console_users').select('id').where('email', '=', email).executeTakeFirst();
  return row !== undefined;
}
