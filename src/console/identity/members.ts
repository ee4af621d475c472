// The members and invitations of an account.

import type { Role } from '../../accounts/membership.ts';
import { DAY_MS } from '../../ledger/instant.ts';
import type { AccountDatabase, AccountQueries } from '../../store/account-database.ts';
import { renameAccount } from './accounts.ts';
import { sha256Of } from './secret-token.ts';

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

/** `last-owner`: the change is refused, because the account would have no owner left. */
export type MemberChange = 'done' | 'not-found' | 'last-owner';

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

  async rename(account: number, name: string): Promise<void> {
    await this.#database.alone((queries) => renameAccount(queries, account, name));
  }

  /**
   * @param inviterId the owner who creates the invitation; null for the command line
   * @param token the token for the invitation link; only its SHA-256 is stored
   * @returns false if an invitation with this token was already created
   */
  async invite(account: number, role: Role, inviterId: string | null, token: string): Promise<boolean> {
    const now = this.#now();
    const { queries } = this.#database;
    await queries.deleteFrom('console_invitations').where('expires_at', '<=', now).execute();
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
      })
      .onConflict((conflict) => conflict.column('token_sha256').doNothing())
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
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
