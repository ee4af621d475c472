// All that is known about people, opened together on the console's connections. It loads better-auth, which takes its
// time, so it is imported when the first request for the console comes.

import type { SignUpPolicy } from '../../accounts/membership.ts';
import type { ConsoleDatabase } from '../../store/console-database.ts';
import { Attempts } from './attempts.ts';
import { Members } from './members.ts';
import { type Letters, People } from './people.ts';
import { Sessions } from './sessions.ts';

export interface IdentityOptions {
  readonly database: ConsoleDatabase;
  readonly signUp: SignUpPolicy;
  readonly letters: Letters | null;
  readonly now: () => number;
  readonly onTrouble: (error: unknown) => void;
}

export interface Identity {
  readonly people: People;
  readonly members: Members;
  readonly sessions: Sessions;
  readonly attempts: Attempts;
  close(): Promise<void>;
}

/** The database is its own from here on, and closed with it. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { database, now } = options;
  const people = await People.open(options);
  const members = new Members(database, now);
  return {
    people,
    members,
    sessions: new Sessions(people.library, members, now),
    attempts: new Attempts(database, now),
    async close() {
      await people.settled();
      await database.close();
    },
  };
}
