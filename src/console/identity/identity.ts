// The console's users, members, sessions and rate limits. This module is imported only at the first request that
// needs it, because its query builder, Kysely, takes 60 to 90 ms to load.

import type { SignUpPolicy } from '../../accounts/membership.ts';
import type { AccountDatabase } from '../../store/account-database.ts';
import { AttemptLimiter } from './attempt-limiter.ts';
import type { Mailer } from './mailer.ts';
import { Members } from './members.ts';
import { OutgoingMail } from './outgoing-mail.ts';
import { PasswordHasher } from './password-hasher.ts';
import { Registrations } from './registration.ts';
import { Sessions } from './sessions.ts';
import { Users } from './users.ts';

interface IdentityOptions {
  readonly database: AccountDatabase;
  readonly signUp: SignUpPolicy;
  /** Null if no mail server is configured. */
  readonly mailer: Mailer | null;
  readonly now: () => number;
  readonly onMailError: (error: unknown) => void;
}

export function openIdentity({ database, signUp, mailer, now, onMailError }: IdentityOptions) {
  const attempts = new AttemptLimiter(database, now);
  const mail = new OutgoingMail(mailer, (purpose, email) => attempts.mayMail(purpose, email), onMailError);
  const shared = { database, mail, passwords: new PasswordHasher(), now };
  return {
    users: new Users(shared),
    registrations: new Registrations({ ...shared, signUp }),
    members: new Members(database, now),
    sessions: new Sessions(database, now),
    attempts,
    database,
    /** Waits for the emails that are being sent. */
    close: () => mail.done(),
  };
}

export type Identity = ReturnType<typeof openIdentity>;
