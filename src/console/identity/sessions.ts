// Sessions of signed-in users. The cookie contains a token; the database stores only the SHA-256 of the token. A
// session ends 12 hours after its last use or 7 days after it began, whichever comes first. Signing out, changing the
// password or removing the user ends the session immediately.

import { DAY_MS, HOUR_MS } from '../../ledger/instant.ts';
import type { AccountDatabase } from '../../store/account-database.ts';
import type { Viewer } from '../layout.ts';
import { newToken, sha256Of } from './secret-token.ts';

const IDLE_MS = 12 * HOUR_MS;
const LIFETIME_MS = 7 * DAY_MS;
/** A session is updated at most once per interval, so most page views write nothing to the database. */
const UPDATE_INTERVAL_MS = 5 * 60_000;

export interface ListedSession {
  /** The SHA-256 of the token. */
  readonly id: string;
  readonly browser: string;
  readonly createdAt: number;
  /** Can lag behind the last use by up to five minutes. */
  readonly usedAt: number;
  readonly isCurrent: boolean;
}

/** The first match counts, so Edge and Opera come before Chrome: their user agents also contain `Chrome`. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const;
const SYSTEMS = [
  ['iPhone', 'an iPhone'],
  ['iPad', 'an iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
] as const;

/** Returns a description such as `Firefox on Linux`. @param userAgent the `User-Agent` header of a request */
export function browserOf(userAgent: string | undefined): string {
  const named = (names: typeof BROWSERS | typeof SYSTEMS) => names.find(([mark]) => userAgent?.includes(mark))?.[1];
  const [browser, system] = [named(BROWSERS) ?? 'Unknown browser', named(SYSTEMS)];
  return system === undefined ? browser : `${browser} on ${system}`;
}

export class Sessions {
  readonly #database: AccountDatabase;
  readonly #now: () => number;

  constructor(database: AccountDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /**
   * @param browser a description such as `Firefox on Linux`
   * @param passwordHash the hash with which the user's password was verified; null if no password was verified
   * @returns the token for the cookie; null if the password has changed since it was verified. The change ended all
   * sessions of the user, so none may begin with the old password
   */
  begin(userId: string, browser: string, passwordHash: string | null): Promise<string | null> {
    return this.#database.alone(async (queries) => {
      if (passwordHash !== null) {
        const ofUser = queries.selectFrom('console_users').select('password_hash').where('id', '=', userId);
        if ((await ofUser.executeTakeFirst())?.password_hash !== passwordHash) return null;
      }
      const token = newToken();
      const now = this.#now();
      await queries.deleteFrom('console_sessions').where('expires_at', '<=', now).execute();
      const times = { created_at: now, expires_at: now + IDLE_MS, used_at: now };
      await queries
        .insertInto('console_sessions')
        .values({ token_sha256: sha256Of(token), user_id: userId, ...times, browser })
        .execute();
      return token;
    });
  }

  /** Reads the membership on every call, so that a removal or a new role takes effect immediately. */
  async viewer(token: string): Promise<Viewer | null> {
    const { queries } = this.#database;
    const tokenSha256 = sha256Of(token);
    const session = await queries
      .selectFrom('console_sessions as session')
      .innerJoin('console_users as user', 'user.id', 'session.user_id')
      .innerJoin('console_members as member', 'member.user_id', 'session.user_id')
      .innerJoin('accounts as account', 'account.account', 'member.account')
      .select(['session.created_at', 'session.expires_at', 'session.used_at'])
      .select(['user.id as userId', 'user.email', 'member.role', 'account.account', 'account.name as accountName'])
      .where('session.token_sha256', '=', tokenSha256)
      .executeTakeFirst();
    if (session === undefined) return null;
    const { created_at: createdAt, expires_at: expiresAt, used_at: usedAt, ...viewer } = session;
    const now = this.#now();
    if (expiresAt <= now) {
      await this.end(token);
      return null;
    }
    // On a full disk, this write fails. The session then stays valid until its expiry, and users can still read pages.
    if (now - usedAt > UPDATE_INTERVAL_MS)
      await queries
        .updateTable('console_sessions')
        .set({ expires_at: Math.min(now + IDLE_MS, createdAt + LIFETIME_MS), used_at: now })
        .where('token_sha256', '=', tokenSha256)
        .execute()
        .catch(() => {});
    return viewer;
  }

  /** Active sessions of a user, most recently used first. @param token the token of the current session */
  async list(userId: string, token: string): Promise<readonly ListedSession[]> {
    const rows = await this.#database.queries
      .selectFrom('console_sessions')
      .select(['token_sha256 as id', 'browser', 'created_at as createdAt', 'used_at as usedAt'])
      .where('user_id', '=', userId)
      .where('expires_at', '>', this.#now())
      .orderBy('used_at', 'desc')
      .orderBy('id')
      .execute();
    const current = sha256Of(token);
    return rows.map((row) => ({ ...row, isCurrent: row.id === current }));
  }

  /**
   * Ends one or all of a user's sessions, except the current session.
   *
   * @param id the `id` of a listed session; null to end all sessions except the current one
   * @param token the token of the current session
   */
  async endOther(userId: string, id: string | null, token: string): Promise<void> {
    const others = this.#database.queries
      .deleteFrom('console_sessions')
      .where('user_id', '=', userId)
      .where('token_sha256', '<>', sha256Of(token));
    await (id === null ? others : others.where('token_sha256', '=', id)).execute();
  }

  async end(token: string): Promise<void> {
    await this.#database.queries.deleteFrom('console_sessions').where('token_sha256', '=', sha256Of(token)).execute();
  }
}
