// Limits how often something may be attempted, such as signing in with one email address, in windows of 15 minutes that
// begin with the first attempt. An attempt is counted before it is made, so that parallel attempts cannot pass the limit,
// and uncounted when it succeeds. Counts are in the database: all processes share them. A key is stored as its hash, since
// people type passwords into email fields.

import { sql } from 'kysely';
import type { ConsoleDatabase } from '../../store/console-database.ts';
import { sha256Of } from './secret-token.ts';

const WINDOW_MS = 15 * 60_000;
const PER_ADDRESS_MAX = 10;
const PER_CLIENT_MAX = 100;

export interface Attempt {
  readonly action: 'sign-in' | 'sign-up' | 'reset';
  readonly email: string;
  /** Who attempts it, such as the IP address. */
  readonly client: string;
}

export class AttemptLimiter {
  readonly #database: ConsoleDatabase;
  readonly #now: () => number;
  #sweptAt = 0;

  constructor(database: ConsoleDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /**
   * Counts an attempt for its email address and for its client.
   *
   * @returns 0 when it is within both limits, else the milliseconds until the window that it exceeds ends
   */
  async consume(attempt: Attempt): Promise<number> {
    await this.#sweep();
    const limits = [
      [addressKey(attempt), PER_ADDRESS_MAX],
      [clientKey(attempt), PER_CLIENT_MAX],
    ] as const;
    for (const [key, attemptsMax] of limits) {
      const { attempts, ends_at: endsAt } = await this.#count(key);
      if (attempts > attemptsMax) return Math.max(1, endsAt - this.#now());
    }
    return 0;
  }

  /** Forgets the attempts for the email address, and this one of the client. */
  async succeeded(attempt: Attempt): Promise<void> {
    const { queries } = this.#database;
    await queries.deleteFrom('console_attempts').where('subject_sha256', '=', addressKey(attempt)).execute();
    await queries
      .updateTable('console_attempts')
      .set({ attempts: sql`attempts - 1` })
      .where('subject_sha256', '=', clientKey(attempt))
      .where('attempts', '>', 0)
      .execute();
  }

  #count(key: string): Promise<{ attempts: number; ends_at: number }> {
    const now = this.#now();
    const isOver = sql`console_attempts.ends_at <= ${now}`;
    return this.#database.queries
      .insertInto('console_attempts')
      .values({ subject_sha256: key, attempts: 1, ends_at: now + WINDOW_MS })
      .onConflict((conflict) =>
        conflict.column('subject_sha256').doUpdateSet({
          attempts: sql`CASE WHEN ${isOver} THEN 1 ELSE console_attempts.attempts + 1 END`,
          ends_at: sql`CASE WHEN ${isOver} THEN excluded.ends_at ELSE console_attempts.ends_at END`,
        }),
      )
      .returning(['attempts', 'ends_at'])
      .executeTakeFirstOrThrow();
  }

  /** Deletes the windows that have ended, once a window. */
  async #sweep(): Promise<void> {
    const now = this.#now();
    if (now < this.#sweptAt + WINDOW_MS) return;
    this.#sweptAt = now;
    await this.#database.queries.deleteFrom('console_attempts').where('ends_at', '<=', now).execute();
  }
}

function addressKey({ action, email }: Attempt): string {
  return sha256Of(`${action} ${email}`);
}

function clientKey({ action, client }: Attempt): string {
  return sha256Of(`${action} from ${client}`);
}
