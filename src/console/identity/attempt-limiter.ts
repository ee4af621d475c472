// Limits attempts to sign in, sign up or reset a password. In each window of 15 minutes, each client and each subject
// has a maximum number of attempts. The subject is the pair of email address and client, so that an attacker cannot lock
// the user out. The number of emails to each address is limited too.
//
// An attempt is counted before it is made, so that parallel attempts cannot exceed the limit. An attempt that exceeds one
// limit does not count toward the other: a client over its limit must not use up the attempts of email addresses.
//
// The counts are in a database table, which all processes share. The table stores only hashes of subjects and clients,
// because people sometimes type passwords into email fields.

import { sql } from 'kysely';
import type { AccountDatabase } from '../../store/account-database.ts';
import { sha256Of } from './secret-token.ts';

const WINDOW_MS = 15 * 60_000;
const PER_SUBJECT_MAX = 10;
const PER_CLIENT_MAX = 100;
const MAILS_MAX = 5;

export interface Attempt {
  readonly action: 'sign-in' | 'sign-up' | 'reset';
  readonly email: string;
  /** Identifies the client, for example by its IP address. */
  readonly client: string;
}

export class AttemptLimiter {
  readonly #database: AccountDatabase;
  readonly #now: () => number;
  #sweptAt = 0;

  constructor(database: AccountDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** @returns 0 if the attempt is allowed, otherwise the milliseconds until the window of the exceeded limit ends */
  async consume(attempt: Attempt): Promise<number> {
    await this.#sweep();
    const clientWaitMs = await this.#count(clientKey(attempt), PER_CLIENT_MAX);
    if (clientWaitMs > 0) return clientWaitMs;
    const subjectWaitMs = await this.#count(subjectKey(attempt), PER_SUBJECT_MAX);
    if (subjectWaitMs > 0) await this.#uncount(clientKey(attempt));
    return subjectWaitMs;
  }

  /** Counts an email. @returns false if the address has already received the maximum number of such emails */
  async mayMail(purpose: Exclude<Attempt['action'], 'sign-in'>, email: string): Promise<boolean> {
    return (await this.#count(sha256Of(`${purpose} mail to ${email}`), MAILS_MAX)) === 0;
  }

  /** Deletes the subject's count, and subtracts this attempt from the client's count. */
  async succeeded(attempt: Attempt): Promise<void> {
    const { queries } = this.#database;
    await queries.deleteFrom('console_attempts').where('subject_sha256', '=', subjectKey(attempt)).execute();
    await this.#uncount(clientKey(attempt));
  }

  /** @returns 0 if the count is within the limit, otherwise the milliseconds until the window ends */
  async #count(key: string, attemptsMax: number): Promise<number> {
    const now = this.#now();
    const isOver = sql`console_attempts.ends_at <= ${now}`;
    const { attempts, ends_at: endsAt } = await this.#database.queries
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
    return attempts > attemptsMax ? Math.max(1, endsAt - this.#now()) : 0;
  }

  async #uncount(key: string): Promise<void> {
    await this.#database.queries
      .updateTable('console_attempts')
      .set({ attempts: sql`attempts - 1` })
      .where('subject_sha256', '=', key)
      .where('attempts', '>', 0)
      .execute();
  }

  async #sweep(): Promise<void> {
    const now = this.#now();
    if (now < this.#sweptAt + WINDOW_MS) return;
    this.#sweptAt = now;
    await this.#database.queries.deleteFrom('console_attempts').where('ends_at', '<=', now).execute();
  }
}

function subjectKey({ action, email, client }: Attempt): string {
  return sha256Of(`${action} ${email} from ${client}`);
}

function clientKey({ action, client }: Attempt): string {
  return sha256Of(`${action} from ${client}`);
}
