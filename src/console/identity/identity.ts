// Users, members, sessions and rate limits of the console, on one set of database connections. It loads Kysely, which
// takes 60 to 90 ms, so it is imported when the console gets its first request.

import { AttemptLimiter } from './attempt-limiter.ts';
import { Members } from './members.ts';
import { Sessions } from './sessions.ts';
import { Users, type UsersOptions } from './users.ts';

export interface Identity {
  readonly users: Users;
  readonly members: Members;
  readonly sessions: Sessions;
  readonly attempts: AttemptLimiter;
  close(): Promise<void>;
}

/** @param options.database is closed together with what is returned */
export function openIdentity(options: UsersOptions): Identity {
  const { database, now } = options;
  const users = new Users(options);
  return {
    users,
    members: new Members(database, now),
    sessions: new Sessions(database, now),
    attempts: new AttemptLimiter(database, now),
    async close() {
      await users.backgroundWorkDone();
      await database[Symbol.asyncDispose]();
    },
  };
}
