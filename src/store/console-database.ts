// The tables of the web console, as whoever asks for them sees them: the same queries on every store. They are on
// connections of their own, so that the console takes none from the ledger.

import type { Kysely } from 'kysely';
import type { Role } from '../accounts/membership.ts';

/** Milliseconds since 1970 in all columns that end in `_at`. The tables of better-auth are its own, but for what is read of them. */
export interface ConsoleTables {
  readonly accounts: { readonly account: number; readonly name: string; readonly created_at: number };
  readonly console_users: { readonly id: string; readonly email: string };
  readonly console_members: {
    readonly user_id: string;
    readonly account: number;
    readonly role: Role;
    readonly created_at: number;
  };
  readonly console_invitations: {
    readonly token_sha256: string;
    readonly account: number;
    readonly role: Role;
    readonly created_at: number;
    readonly expires_at: number;
    readonly used_at: number | null;
  };
  readonly console_attempts: { readonly subject_sha256: string; readonly attempts: number; readonly ends_at: number };
}

export type ConsoleQueries = Kysely<ConsoleTables>;

export interface ConsoleDatabase {
  readonly type: 'sqlite' | 'postgres';
  readonly queries: ConsoleQueries;
  /**
   * Runs `work` in one transaction, alone among those that ask for `alone` through here: two of them never see the same
   * state and both act on it. It must not wait for anything but its own queries, since writers of the ledger may wait for it.
   */
  alone<Result>(work: (queries: ConsoleQueries) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}
