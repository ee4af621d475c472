// Creates console users, by sign-up or by invitation.
//
//   without a mail server   form ──▶ user, member
//   with a mail server      form ──▶ pending ── mailed link and password ──▶ user, member
//                                       └── 24 hours ──▶ expired
//
// A pending registration does not reserve the email address or the account, so the form can be sent again. Confirmation
// requires the link and the password. If the link were enough, an attacker could sign up with a victim's address, and
// the victim would confirm a password that the attacker knows.

import { randomUUID } from 'node:crypto';
import type { Role, SignUpPolicy } from '../../accounts/membership.ts';
import { DAY_MS } from '../../ledger/instant.ts';
import type { AccountQueries, AccountTables } from '../../store/account-database.ts';
import { createAccount, firstAccount, hasMembers, renameAccount } from './accounts.ts';
import { redeemInvitation, withdrawOwnerInvitations } from './members.ts';
import { newToken, sha256Of } from './secret-token.ts';
import { type Credentials, type UsersOptions, userByEmail } from './users.ts';

const PENDING_MS = DAY_MS;

type Pending = AccountTables['console_pending_users'];

export type SignUpOffer =
  | { readonly kind: 'new-account' }
  /** The ledger's first account has no members. The person who signs up becomes its owner. */
  | { readonly kind: 'first-account'; readonly account: number; readonly name: string }
  /** The ledger's first account has no members. The first owner needs an invitation link from the operator. */
  | { readonly kind: 'link-only' }
  | { readonly kind: 'closed' };

export function isOpen({ kind }: SignUpOffer): boolean {
  return kind === 'new-account' || kind === 'first-account';
}

export type Entry =
  /**
   * @property claimed an existing account without members; null to create a new account. The person who signs up
   * becomes the owner of the existing account, which is renamed to `accountName`.
   */
  | { readonly by: 'sign-up'; readonly accountName: string; readonly claimed: number | null }
  | { readonly by: 'invitation'; readonly tokenSha256: string };

export type Registration =
  | { readonly result: 'user'; readonly userId: string }
  /** Scrip mails a confirmation link. If the address already belongs to a user, Scrip mails a notice instead. */
  | { readonly result: 'mailed' }
  | { readonly result: 'address-taken' }
  /** Sign-up is closed, or the invitation is not valid. */
  | { readonly result: 'refused' };

interface RegistrationOptions extends UsersOptions {
  readonly signUp: SignUpPolicy;
}

interface NewUser {
  readonly email: string;
  readonly passwordHash: string;
}

export class Registrations {
  readonly #options: RegistrationOptions;

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  /** @param isLocal whether the request comes from the machine that runs Scrip */
  async offer(isLocal: boolean, queries = this.#options.database.queries): Promise<SignUpOffer> {
    const { signUp } = this.#options;
    if (signUp === 'closed') return { kind: 'closed' };
    if (signUp === 'first' && (await hasMembers(queries))) return { kind: 'closed' };
    const first = await firstAccount(queries);
    if (first === null || (await hasMembers(queries, first.account))) return { kind: 'new-account' };
    if (isLocal) return { kind: 'first-account', ...first };
    return { kind: signUp === 'first' ? 'link-only' : 'new-account' };
  }

  async isFirstVisit(isLocal: boolean): Promise<boolean> {
    return !(await hasMembers(this.#options.database.queries)) && isOpen(await this.offer(isLocal));
  }

  /**
   * Hashes the password before any check, so that a refusal takes about as long as a success. With a mail server, the
   * result is always `mailed`, and does not reveal whether the address belongs to a user.
   */
  async register(credentials: Credentials, entry: Entry): Promise<Registration> {
    const { database, passwords, mail } = this.#options;
    const passwordHash = await passwords.hash(credentials.password);
    const newUser = { email: credentials.email, passwordHash };
    if (!mail.isPossible) return database.alone((queries) => this.#create(queries, newUser, entry));
    const { email } = newUser;
    mail.sendLater('sign-up', email, async (mailer) => {
      if (await userByEmail(database.queries, email)) await mailer.sendAlreadyRegistered(email);
      else await mailer.sendConfirmation(email, await this.#newLink(newUser, entry));
    });
    return { result: 'mailed' };
  }

  /** @returns the email address to which the link was sent; null if the link is invalid */
  async emailOfLink(token: string): Promise<string | null> {
    return (await this.#pendingOf(token))?.email ?? null;
  }

  /** Creates the user and invalidates the link. @returns null if the password is wrong; the link then stays valid */
  async confirm(token: string, password: string): Promise<Registration | null> {
    const { database, passwords } = this.#options;
    const pending = await this.#pendingOf(token);
    if (pending === undefined) return { result: 'refused' };
    if (!(await passwords.verify(password, pending.password_hash))) return null;
    const newUser = { email: pending.email, passwordHash: pending.password_hash };
    return database.alone(async (queries) => {
      const { numDeletedRows } = await queries
        .deleteFrom('console_pending_users')
        .where('token_sha256', '=', sha256Of(token))
        .executeTakeFirst();
      return numDeletedRows === 0n ? { result: 'refused' } : this.#create(queries, newUser, entryOf(pending));
    });
  }

  /** Call this in a database transaction. If the registration is refused, its invitation stays valid. */
  async #create(queries: AccountQueries, { email, passwordHash }: NewUser, entry: Entry): Promise<Registration> {
    if ((await userByEmail(queries, email)) !== undefined) return { result: 'address-taken' };
    const membership = await this.#admit(queries, entry);
    if (membership === null) return { result: 'refused' };
    if (!(await hasMembers(queries, membership.account))) await withdrawOwnerInvitations(queries, membership.account);
    const now = this.#options.now();
    const user = { id: randomUUID(), email, password_hash: passwordHash, created_at: now };
    await queries.insertInto('console_users').values(user).execute();
    await queries
      .insertInto('console_members')
      .values({ user_id: user.id, ...membership, created_at: now })
      .execute();
    return { result: 'user', userId: user.id };
  }

  async #admit(queries: AccountQueries, entry: Entry): Promise<{ account: number; role: Role } | null> {
    const now = this.#options.now();
    if (entry.by === 'invitation') return redeemInvitation(queries, entry.tokenSha256, now);
    const { accountName, claimed } = entry;
    const offer = await this.offer(claimed !== null, queries);
    if (claimed === null)
      return offer.kind === 'new-account'
        ? { account: await createAccount(queries, accountName, now), role: 'owner' }
        : null;
    // Another person might have claimed the account after this person opened the form.
    if (offer.kind !== 'first-account' || offer.account !== claimed) return null;
    await renameAccount(queries, claimed, accountName);
    return { account: claimed, role: 'owner' };
  }

  async #newLink({ email, passwordHash }: NewUser, entry: Entry): Promise<string> {
    const { database, now } = this.#options;
    const token = newToken();
    const at = now();
    await database.queries.deleteFrom('console_pending_users').where('expires_at', '<=', at).execute();
    await database.queries
      .insertInto('console_pending_users')
      .values({
        token_sha256: sha256Of(token),
        email,
        password_hash: passwordHash,
        account_name: entry.by === 'sign-up' ? entry.accountName : null,
        claimed_account: entry.by === 'sign-up' ? entry.claimed : null,
        invitation_sha256: entry.by === 'invitation' ? entry.tokenSha256 : null,
        expires_at: at + PENDING_MS,
      })
      .execute();
    return token;
  }

  #pendingOf(token: string): Promise<Pending | undefined> {
    const { database, now } = this.#options;
    return database.queries
      .selectFrom('console_pending_users')
      .selectAll()
      .where('token_sha256', '=', sha256Of(token))
      .where('expires_at', '>', now())
      .executeTakeFirst();
  }
}

function entryOf({
  account_name: accountName,
  claimed_account: claimed,
  invitation_sha256: tokenSha256,
}: Pending): Entry {
  if (tokenSha256 !== null) return { by: 'invitation', tokenSha256 };
  return { by: 'sign-up', accountName: accountName as string, claimed };
}

export function byInvitation(token: string): Entry {
  return { by: 'invitation', tokenSha256: sha256Of(token) };
}
