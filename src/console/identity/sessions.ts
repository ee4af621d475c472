// Who is signed in. A session is a row on the server; the browser holds a secret of which the row has only the hash. It
// ends 12 hours after it was last used, 7 days after it began, and with a sign-out, a new password or a removal.

import type { AuthLibrary } from './auth-library.ts';
import type { Members, Membership } from './members.ts';
import { digestOf, isSecret, newSecret } from './one-time-secret.ts';

const IDLE_MS = 12 * 3_600_000;
const LIFETIME_MS = 7 * 86_400_000;
/** A session is written anew at most this often: looking at a page is no write. */
const NOTED_MS = 5 * 60_000;

/** Whoever looks at the console. Looked up for each request: a role that is taken away is gone at once. */
export interface Viewer extends Membership {
  readonly userId: string;
  readonly email: string;
}

interface SessionRecord {
  readonly userId: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export class Sessions {
  readonly #library: AuthLibrary;
  readonly #members: Members;
  readonly #now: () => number;

  constructor(library: AuthLibrary, members: Members, now: () => number) {
    this.#library = library;
    this.#members = members;
    this.#now = now;
  }

  /** @returns the secret for the browser */
  async begin(userId: string): Promise<string> {
    const secret = newSecret();
    const now = this.#now();
    const at = new Date(now);
    await this.#library.adapter.deleteMany({
      model: 'session',
      where: [{ field: 'expiresAt', operator: 'lt', value: at }],
    });
    const session = { token: digestOf(secret), createdAt: at, updatedAt: at, expiresAt: new Date(now + IDLE_MS) };
    await this.#library.records.createSession(userId, false, session, true);
    return secret;
  }

  async viewer(secret: string): Promise<Viewer | null> {
    if (!isSecret(secret)) return null;
    const token = digestOf(secret);
    const session = await this.#library.adapter.findOne<SessionRecord>({
      model: 'session',
      where: [{ field: 'token', value: token }],
    });
    if (session === null) return null;
    const now = this.#now();
    const endsAt = session.createdAt.getTime() + LIFETIME_MS;
    if (Math.min(session.expiresAt.getTime(), endsAt) <= now) {
      await this.#library.records.deleteSession(token);
      return null;
    }
    const expiresAt = new Date(Math.min(now + IDLE_MS, endsAt));
    if (expiresAt.getTime() - session.expiresAt.getTime() > NOTED_MS)
      await this.#library.records.updateSession(token, { expiresAt });
    const membership = await this.#members.of(session.userId);
    return membership && { userId: session.userId, ...membership };
  }

  async end(secret: string): Promise<void> {
    if (isSecret(secret)) await this.#library.records.deleteSession(digestOf(secret));
  }
}
