// The members of an account, and the links by which one becomes a member. An account that has a member has an owner.

import { randomBytes } from 'node:crypto';
import type { Role } from '../../accounts/membership.ts';
import type { ConsoleDatabase, ConsoleQueries } from '../../store/console-database.ts';
import { digestOf, isSecret, newSecret } from './one-time-secret.ts';

export const INVITATION_DAYS = 7;
const INVITATION_MS = INVITATION_DAYS * 86_400_000;

export interface Membership {
  readonly account: number;
  readonly accountName: string;
  readonly role: Role;
}

export interface Member {
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly joinedAt: number;
}

export interface PendingInvitation {
  readonly role: Role;
  readonly expiresAt: number;
}

/** `last-owner`: nobody could invite, remove or change roles any more. */
export type MemberChange = 'done' | 'not-found' | 'last-owner';

export class Members {
  readonly #database: ConsoleDatabase;
  readonly #now: () => number;

  constructor(database: ConsoleDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  async of(userId: string): Promise<(Membership & { readonly email: string }) | null> {
    const row = await this.#database.queries
      .selectFrom('console_members')
      .innerJoin('accounts', 'accounts.account', 'console_members.account')
      .innerJoin('console_users', 'console_users.id', 'console_members.user_id')
      .select(['console_members.account', 'accounts.name', 'console_members.role', 'console_users.email'])
      .where('user_id', '=', userId)
      .executeTakeFirst();
    return row ? { account: row.account, accountName: row.name, role: row.role, email: row.email } : null;
  }

  /** The first ones first. */
  async list(account: number): Promise<readonly Member[]> {
    const rows = await this.#database.queries
      .selectFrom('console_members')
      .innerJoin('console_users', 'console_users.id', 'console_members.user_id')
      .select(['user_id', 'email', 'role', 'console_members.created_at as joined_at'])
      .where('account', '=', account)
      .orderBy('joined_at')
      .orderBy('email')
      .execute();
    return rows.map((row) => ({ userId: row.user_id, email: row.email, role: row.role, joinedAt: row.joined_at }));
  }

  async accountNamed(name: string): Promise<number | null> {
    const row = await this.#database.queries
      .selectFrom('accounts')
      .select('account')
      .where('name', '=', name)
      .executeTakeFirst();
    return row?.account ?? null;
  }

  async hasMembers(account: number): Promise<boolean> {
    const row = await this.#database.queries
      .selectFrom('console_members')
      .select('user_id')
      .where('account', '=', account)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** @returns the secret of the link, which nobody can be told again */
  async invite(account: number, role: Role): Promise<string> {
    const secret = newSecret();
    const now = this.#now();
    const { queries } = this.#database;
    await queries.deleteFrom('console_invitations').where('expires_at', '<=', now).execute();
    await queries
      .insertInto('console_invitations')
      .values({
        token_sha256: digestOf(secret),
        account,
        role,
        created_at: now,
        expires_at: now + INVITATION_MS,
        used_at: null,
      })
      .execute();
    return secret;
  }

  /** Null when the link was used, is too old, or never was. */
  async invitation(secret: string): Promise<Membership | null> {
    if (!isSecret(secret)) return null;
    const row = await this.#database.queries
      .selectFrom('console_invitations')
      .innerJoin('accounts', 'accounts.account', 'console_invitations.account')
      .select(['console_invitations.account', 'accounts.name', 'role'])
      .where('token_sha256', '=', digestOf(secret))
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .executeTakeFirst();
    return row ? { account: row.account, accountName: row.name, role: row.role } : null;
  }

  async pendingInvitations(account: number): Promise<readonly PendingInvitation[]> {
    const rows = await this.#database.queries
      .selectFrom('console_invitations')
      .select(['role', 'expires_at'])
      .where('account', '=', account)
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .orderBy('expires_at')
      .execute();
    return rows.map((row) => ({ role: row.role, expiresAt: row.expires_at }));
  }

  /** Links that nobody has used yet no longer work. */
  async withdrawInvitations(account: number): Promise<void> {
    await this.#database.queries
      .deleteFrom('console_invitations')
      .where('account', '=', account)
      .where('used_at', 'is', null)
      .execute();
  }

  /** With all that is theirs: the credential, the sessions, the right to the address. */
  remove(account: number, userId: string): Promise<MemberChange> {
    return this.#change(account, userId, null, async (queries) => {
      await queries.deleteFrom('console_users').where('id', '=', userId).execute();
    });
  }

  setRole(account: number, userId: string, role: Role): Promise<MemberChange> {
    return this.#change(account, userId, role, async (queries) => {
      await queries.updateTable('console_members').set({ role }).where('user_id', '=', userId).execute();
    });
  }

  /** @param role that the member has afterwards; null for none */
  #change(
    account: number,
    userId: string,
    role: Role | null,
    change: (queries: ConsoleQueries) => Promise<void>,
  ): Promise<MemberChange> {
    return this.#database.alone(async (queries) => {
      const members = await queries
        .selectFrom('console_members')
        .select(['user_id', 'role'])
        .where('account', '=', account)
        .execute();
      if (!members.some((member) => member.user_id === userId)) return 'not-found';
      const hasOtherOwner = members.some((member) => member.role === 'owner' && member.user_id !== userId);
      if (role !== 'owner' && !hasOtherOwner) return 'last-owner';
      await change(queries);
      return 'done';
    });
  }
}

/** The parts of a sign-up, in the transaction in which the user is made. */

/** Makes an account; when the name is taken, of a name with a few random digits behind it. */
export async function makeAccount(queries: ConsoleQueries, name: string, now: number): Promise<number> {
  const namesake = await queries.selectFrom('accounts').select('account').where('name', '=', name).executeTakeFirst();
  const { latest } = await queries
    .selectFrom('accounts')
    .select(({ fn }) => fn.max('account').as('latest'))
    .executeTakeFirstOrThrow();
  const account = Number(latest ?? 0) + 1;
  const unique = namesake ? `${name} ${randomBytes(3).toString('hex')}` : name;
  await queries.insertInto('accounts').values({ account, name: unique, created_at: now }).execute();
  return account;
}

/** Null when it is no longer good. */
export async function useInvitation(
  queries: ConsoleQueries,
  secret: string,
  now: number,
): Promise<{ account: number; role: Role } | null> {
  const row = await queries
    .updateTable('console_invitations')
    .set({ used_at: now })
    .where('token_sha256', '=', digestOf(secret))
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returning(['account', 'role'])
    .executeTakeFirst();
  return row ?? null;
}
