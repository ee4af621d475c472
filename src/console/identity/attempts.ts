// How often one may try: a count for each subject, such as an e-mail address at the sign-in, in a window that begins
// with the first attempt. It is taken before the attempt is made, so that many at once are no way around it, and given
// back when the attempt was a good one. All processes on one database count together. A subject is kept as its hash,
// since people type passwords into the field for the address.

import { sql } from 'kysely';
import type { ConsoleDatabase } from '../../store/console-database.ts';
import { digestOf } from './one-time-secret.ts';

const WINDOW_MS = 15 * 60_000;

export interface Subject {
  readonly name: string;
  readonly attemptsMax: number;
}

export class Attempts {
  readonly #database: ConsoleDatabase;
  readonly #now: () => number;
  #sweptAt = 0;

  constructor(database: ConsoleDatabase, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  /** @returns 0 when all subjects may try once more, else the milliseconds until they may */
  async take(subjects: readonly Subject[]): Promise<number> {
    await this.#sweep();
    for (const subject of subjects) {
      const { attempts, ends_at: endsAt } = await this.#count(subject);
      if (attempts > subject.attemptsMax) return Math.max(1, endsAt - this.#now());
    }
    return 0;
  }

  /** Its owner was let in: what failed before does not count against them. */
  async forget({ name }: Subject): Promise<void> {
    const subject = digestOf(name);
    await this.#database.queries.deleteFrom('console_attempts').where('subject_sha256', '=', subject).execute();
  }

  async giveBack({ name }: Subject): Promise<void> {
    await this.#database.queries
      .updateTable('console_attempts')
      .set({ attempts: sql`attempts - 1` })
      .where('subject_sha256', '=', digestOf(name))
      .where('attempts', '>', 0)
      .execute();
  }

  #count({ name }: Subject): Promise<{ attempts: number; ends_at: number }> {
    const now = this.#now();
    const isOver = sql`console_attempts.ends_at <= ${now}`;
    return this.#database.queries
      .insertInto('console_attempts')
      .values({ subject_sha256: digestOf(name), attempts: 1, ends_at: now + WINDOW_MS })
      .onConflict((conflict) =>
        conflict.column('subject_sha256').doUpdateSet({
          attempts: sql`CASE WHEN ${isOver} THEN 1 ELSE console_attempts.attempts + 1 END`,
          ends_at: sql`CASE WHEN ${isOver} THEN excluded.ends_at ELSE console_attempts.ends_at END`,
        }),
      )
      .returning(['attempts', 'ends_at'])
      .executeTakeFirstOrThrow();
  }

  /** What no longer counts goes, once a window. */
  async #sweep(): Promise<void> {
    const now = this.#now();
    if (now < this.#sweptAt + WINDOW_MS) return;
    this.#sweptAt = now;
    await this.#database.queries.deleteFrom('console_attempts').where('ends_at', '<=', now).execute();
  }
}
