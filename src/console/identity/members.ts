// The members of an account and its invitations. An account that has members has at least one owner.

import { randomBytes } from 'node:crypto';
import type { Role } from '../../accounts/membership.ts';
import { DAY_MS } from '../../ledger/instant.ts';
import type { ConsoleDatabase, ConsoleQueries } from '../../store/console-database.ts';
import { newToken, sha256Of } from './secret-token.ts';

const INVITATION_MS = 7 * DAY_MS;

export interface Invitation {
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

/** `last-owner`: refused, since the account would have no owner left. */
export type MemberChange = 'done' | 'not-found' | 'last-owner';

export class Members {
  readonly #database: ConsoleDatabase;
  readonly #now: () => number;

  constructor(database: ConsoleDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** In the order in which they joined. */
  list(account: number): Promise<readonly Member[]> {
    return this.#database.queries
      .selectFrom('console_members')
      .innerJoin('console_users', 'console_users.id', 'console_members.user_id')
      .select(['user_id as userId', 'email', 'role', 'console_members.created_at as joinedAt'])
      .where('account', '=', account)
      .orderBy('joinedAt')
      .orderBy('email')
      .execute();
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

  /** @returns the token of the link; only its hash is stored */
  async invite(account: number, role: Role): Promise<string> {
    const token = newToken();
    const now = this.#now();
    const { queries } = this.#database;
    await queries.deleteFrom('console_invitations').where('expires_at', '<=', now).execute();
    await queries
      .insertInto('console_invitations')
      .values({
        token_sha256: sha256Of(token),
        account,
        role,
        created_at: now,
        expires_at: now + INVITATION_MS,
        used_at: null,
      })
      .execute();
    return token;
  }

  /** Null when the link is used, expired, withdrawn or unknown. */
  async invitation(token: string): Promise<Invitation | null> {
    const invitation = await this.#database.queries
      .selectFrom('console_invitations')
      .innerJoin('accounts', 'accounts.account', 'console_invitations.account')
      .select(['accounts.name as accountName', 'role'])
      .where('token_sha256', '=', sha256Of(token))
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .executeTakeFirst();
    return invitation ?? null;
  }

  pendingInvitations(account: number): Promise<readonly PendingInvitation[]> {
    return this.#database.queries
      .selectFrom('console_invitations')
      .select(['role', 'expires_at as expiresAt'])
      .where('account', '=', account)
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .orderBy('expires_at')
      .execute();
  }

  /** Invalidates the links that have not been used. */
  async withdrawInvitations(account: number): Promise<void> {
    await this.#database.queries
      .deleteFrom('console_invitations')
      .where('account', '=', account)
      .where('used_at', 'is', null)
      .execute();
  }

  /**
   * Changes the role of a member, or removes the member: the user is deleted, with sessions and mailed links. The address
   * can then sign up or join again.
   *
   * @param role null to remove the member
   */
  change(account: number, userId: string, role: Role | null): Promise<MemberChange> {
    return this.#database.alone(async (queries) => {
      const members = await queries
        .selectFrom('console_members')
        .select(['user_id', 'role'])
        .where('account', '=', account)
        .execute();
      if (!members.some((member) => member.user_id === userId)) return 'not-found';
      const hasOtherOwner = members.some((member) => member.role === 'owner' && member.user_id !== userId);
      if (role !== 'owner' && !hasOtherOwner) return 'last-owner';
      if (role === null) await queries.deleteFrom('console_users').where('id', '=', userId).execute();
      else await queries.updateTable('console_members').set({ role }).where('user_id', '=', userId).execute();
      return 'done';
    });
  }
}

/** Creates an account. If the name is taken, a few random digits are appended to it. */
export async function createAccount(queries: ConsoleQueries, name: string, now: number): Promise<number> {
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

/** Marks an invitation as used. @returns null when it is used, expired, withdrawn or unknown */
export async function redeemInvitation(
  queries: ConsoleQueries,
  token: string,
  now: number,
): Promise<{ account: number; role: Role } | null> {
  const row = await queries
    .updateTable('console_invitations')
    .set({ used_at: now })
    .where('token_sha256', '=', sha256Of(token))
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returning(['account', 'role'])
    .executeTakeFirst();
  return row ?? null;
}
