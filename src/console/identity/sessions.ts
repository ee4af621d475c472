// Sessions of signed-in users. A session is a row in the database; the browser holds a token of which the row has the
// SHA-256. A session ends 12 hours after its last use, 7 days after it began, on sign-out, on a new password, and when
// its user is removed.

import { DAY_MS, HOUR_MS } from '../../ledger/instant.ts';
import type { ConsoleDatabase } from '../../store/console-database.ts';
import type { Viewer } from '../layout.ts';
import { newToken, sha256Of } from './secret-token.ts';

const IDLE_MS = 12 * HOUR_MS;
const LIFETIME_MS = 7 * DAY_MS;
/** The end of a session is moved at most this often, so that viewing a page is usually not a write. */
const EXTENSION_INTERVAL_MS = 5 * 60_000;

export class Sessions {
  readonly #database: ConsoleDatabase;
  readonly #now: () => number;

  constructor(database: ConsoleDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** @returns the token for the browser */
  async begin(userId: string): Promise<string> {
    const token = newToken();
    const now = this.#now();
    const { queries } = this.#database;
    await queries.deleteFrom('console_sessions').where('expires_at', '<=', now).execute();
    await queries
      .insertInto('console_sessions')
      .values({ token_sha256: sha256Of(token), user_id: userId, created_at: now, expires_at: now + IDLE_MS })
      .execute();
    return token;
  }

  /** Reads the membership every time, so that a changed role or a removal takes effect at once. */
  async viewer(token: string): Promise<Viewer | null> {
    const { queries } = this.#database;
    const tokenSha256 = sha256Of(token);
    const session = await queries
      .selectFrom('console_sessions as session')
      .innerJoin('console_users as user', 'user.id', 'session.user_id')
      .innerJoin('console_members as member', 'member.user_id', 'session.user_id')
      .innerJoin('accounts as account', 'account.account', 'member.account')
      .select(['session.created_at', 'session.expires_at', 'user.id as userId', 'user.email', 'member.role'])
      .select(['account.account', 'account.name as accountName'])
      .where('session.token_sha256', '=', tokenSha256)
      .executeTakeFirst();
    if (session === undefined) return null;
    const { created_at: createdAt, expires_at: oldExpiresAt, ...viewer } = session;
    const now = this.#now();
    if (oldExpiresAt <= now) {
      await this.end(token);
      return null;
    }
    const expiresAt = Math.min(now + IDLE_MS, createdAt + LIFETIME_MS);
    if (expiresAt - oldExpiresAt > EXTENSION_INTERVAL_MS)
      await queries
        .updateTable('console_sessions')
        .set({ expires_at: expiresAt })
        .where('token_sha256', '=', tokenSha256)
        .execute();
    return viewer;
  }

  async end(token: string): Promise<void> {
    await this.#database.queries.deleteFrom('console_sessions').where('token_sha256', '=', sha256Of(token)).execute();
  }
}
