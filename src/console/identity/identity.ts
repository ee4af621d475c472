// Users, members, sessions and rate limits of the console, on one set of database connections. This module loads
// Kysely, which takes 60 to 90 ms, so it is imported only when the console gets its first request.

import type { SignUpPolicy } from '../../accounts/membership.ts';
import type { ConsoleDatabase } from '../../store/console-database.ts';
import { AttemptLimiter } from './attempt-limiter.ts';
import { Members } from './members.ts';
import { type Mailer, OutgoingMail } from './outgoing-mail.ts';
import { PasswordHasher } from './password-hasher.ts';
import { Registrations } from './registration.ts';
import { Sessions } from './sessions.ts';
import { Users } from './users.ts';

export interface Identity {
  readonly users: Users;
  readonly registrations: Registrations;
  readonly members: Members;
  readonly sessions: Sessions;
  readonly attempts: AttemptLimiter;
  close(): Promise<void>;
}

export interface IdentityOptions {
  /** `close` of the returned object closes this database. */
  readonly database: ConsoleDatabase;
  readonly signUp: SignUpPolicy;
  /** Null if no mail server is configured. */
  readonly mailer: Mailer | null;
  readonly now: () => number;
  /** Called if an email cannot be sent. */
  readonly onMailError: (error: unknown) => void;
}

export function openIdentity({ database, signUp, mailer, now, onMailError }: IdentityOptions): Identity {
  const mail = new OutgoingMail(mailer, onMailError);
  const shared = { database, mail, passwords: new PasswordHasher(), now };
  return {
    users: new Users(shared),
    registrations: new Registrations({ ...shared, signUp }),
    members: new Members(database, now),
    sessions: new Sessions(database, now),
    attempts: new AttemptLimiter(database, now),
    async close() {
      await mail.done();
      await database[Symbol.asyncDispose]();
    },
  };
}
