// The members and invitations of an account.

import type { Role } from '../../accounts/membership.ts';
import { DAY_MS } from '../../ledger/instant.ts';
import type { AccountDatabase, AccountQueries } from '../../store/account-database.ts';
import { renameAccount } from './accounts.ts';
import { newToken, sha256Of } from './secret-token.ts';

const INVITATION_MS = 7 * DAY_MS;

export interface Invitation {
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
  /** The SHA-256 of the invitation's token. */
  readonly id: string;
  readonly role: Role;
  /** The email address of the owner who created the invitation; null if it was created on the command line. */
  readonly inviter: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface NewInvitation {
  readonly account: number;
  readonly role: Role;
  /** The owner who creates the invitation; null for the command line. */
  readonly inviterId: string | null;
  /** The `formHash` of the console form that creates the invitation; null if there is none. */
  readonly formSha256: string | null;
}

/**
 * `last-owner`: the change is refused, because the account would have no owner left. `not-owner`: the change is refused,
 * because the person who makes the change is no longer an owner.
 */
export type MemberChange = 'done' | 'not-found' | 'last-owner' | 'not-owner';

export class Members {
  readonly #database: AccountDatabase;
  readonly #now: () => number;

  constructor(database: AccountDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** Members in the order in which they joined. */
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

  /** @returns the new name, which has a suffix if another account has the wanted name */
  rename(account: number, name: string): Promise<string> {
    return this.#database.alone((queries) => renameAccount(queries, account, name));
  }

  /**
   * @returns the token for the invitation link, of which only the SHA-256 is stored; `already-created` if the form has
   * already created an invitation; `not-owner` if the inviter is not an owner of the account
   */
  invite({
    account,
    role,
    inviterId,
    formSha256,
  }: NewInvitation): Promise<{ readonly token: string } | 'already-created' | 'not-owner'> {
    const token = newToken();
    return this.#database.alone(async (queries) => {
      const now = this.#now();
      await queries.deleteFrom('console_invitations').where('expires_at', '<=', now).execute();
      // A person whose role changed a moment ago must not get an invitation that makes the person an owner again.
      if (inviterId !== null && !(await isOwner(queries, account, inviterId))) return 'not-owner';
      const { numInsertedOrUpdatedRows } = await queries
        .insertInto('console_invitations')
        .values({
          token_sha256: sha256Of(token),
          account,
          role,
          created_at: now,
          expires_at: now + INVITATION_MS,
          used_at: null,
          inviter_id: inviterId,
          form_sha256: formSha256,
        })
        .onConflict((conflict) => conflict.column('form_sha256').doNothing())
        .executeTakeFirstOrThrow();
      return numInsertedOrUpdatedRows === 1n ? { token } : 'already-created';
    });
  }

  /** Returns null if the invitation is used, expired, withdrawn or unknown. */
  async invitation(token: string): Promise<Invitation | null> {
    const invitation = await this.#database.queries
      .selectFrom('console_invitations')
      .innerJoin('accounts', 'accounts.account', 'console_invitations.account')
      .select(['accounts.account', 'accounts.name as accountName', 'role'])
      .where('token_sha256', '=', sha256Of(token))
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .executeTakeFirst();
    return invitation ?? null;
  }

  pendingInvitations(account: number): Promise<readonly PendingInvitation[]> {
    return this.#database.queries
      .selectFrom('console_invitations')
      .leftJoin('console_users', 'console_users.id', 'inviter_id')
      .select(['token_sha256 as id', 'role', 'email as inviter', 'expires_at as expiresAt'])
      .select('console_invitations.created_at as createdAt')
      .where('account', '=', account)
      .where('used_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .orderBy('expires_at')
      .execute();
  }

  /**
   * Invalidates unused invitations.
   *
   * @param id the invitation to invalidate; null for all invitations of the account
   * @returns how many invitations were unused until now
   */
  async withdrawInvitations(account: number, id: string | null): Promise<number> {
    const unused = this.#database.queries
      .deleteFrom('console_invitations')
      .where('account', '=', account)
      .where('used_at', 'is', null);
    const result = await (id === null ? unused : unused.where('token_sha256', '=', id)).executeTakeFirst();
    return Number(result.numDeletedRows);
  }

  /**
   * Changes the role of a member, or removes the member. Removal deletes the user, so that the person can sign up or
   * join again with the same email address.
   *
   * A person who is no longer an owner must not use an invitation to become an owner again, so the change also deletes
   * the person's unused invitations.
   *
   * @param role null to remove the member
   * @param actorId the owner who makes the change
   */
  change(account: number, userId: string, role: Role | null, actorId: string): Promise<MemberChange> {
    return this.#database.alone(async (queries) => {
      if (!(await isOwner(queries, account, actorId))) return 'not-owner';
      const members = await queries
        .selectFrom('console_members')
        .select(['user_id', 'role'])
        .where('account', '=', account)
        .execute();
      if (!members.some((member) => member.user_id === userId)) return 'not-found';
      const hasOtherOwner = members.some((member) => member.role === 'owner' && member.user_id !== userId);
      if (role !== 'owner' && !hasOtherOwner) return 'last-owner';
      // The foreign keys also delete the invitations that a deleted user created.
      if (role === null) await queries.deleteFrom('console_users').where('id', '=', userId).execute();
      else await queries.updateTable('console_members').set({ role }).where('user_id', '=', userId).execute();
      if (role === 'member')
        await queries
          .deleteFrom('console_invitations')
          .where('inviter_id', '=', userId)
          .where('used_at', 'is', null)
          .execute();
      return 'done';
    });
  }
}

async function isOwner(queries: AccountQueries, account: number, userId: string): Promise<boolean> {
  const owner = await queries
    .selectFrom('console_members')
    .select('user_id')
    .where('account', '=', account)
    .where('user_id', '=', userId)
    .where('role', '=', 'owner')
    .executeTakeFirst();
  return owner !== undefined;
}

/** @returns null if the invitation is used, expired, withdrawn or unknown */
export async function redeemInvitation(
  queries: AccountQueries,
  tokenSha256: string,
  now: number,
): Promise<{ account: number; role: Role } | null> {
  const row = await queries
    .updateTable('console_invitations')
    .set({ used_at: now })
    .where('token_sha256', '=', tokenSha256)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returning(['account', 'role'])
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Call this when the first member joins an account. Until then, Scrip can print a link for the first owner each time it
 * starts, so the log might contain links that are still valid.
 */
export async function withdrawOwnerInvitations(queries: AccountQueries, account: number): Promise<void> {
  await queries
    .deleteFrom('console_invitations')
    .where('account', '=', account)
    .where('role', '=', 'owner')
    .where('used_at', 'is', null)
    .execute();
}
