// The tables of the web console, queried in the same way on every store, over connections of their own: the console takes
// none from the ledger.

import type { Kysely } from 'kysely';
import type { Role } from '../accounts/membership.ts';

/** Columns that end in `_at` are milliseconds since 1970. */
export interface ConsoleTables {
  readonly accounts: { readonly account: number; readonly name: string; readonly created_at: number };
  readonly console_users: {
    readonly id: string;
    readonly email: string;
    readonly password_hash: string;
    readonly email_confirmed_at: number | null;
    readonly created_at: number;
  };
  readonly console_sessions: {
    readonly token_sha256: string;
    readonly user_id: string;
    readonly created_at: number;
    readonly expires_at: number;
  };
  readonly console_verifications: {
    readonly token_sha256: string;
    readonly purpose: 'confirm-email' | 'reset-password';
    readonly user_id: string;
    readonly expires_at: number;
  };
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
  readonly console_attempts: {
    readonly subject_sha256: string;
    readonly attempts: number;
    readonly ends_at: number;
  };
}

export type ConsoleQueries = Kysely<ConsoleTables>;

export interface ConsoleDatabase extends AsyncDisposable {
  readonly queries: ConsoleQueries;
  /**
   * Runs `work` in a transaction that excludes every other call of `alone`, in all processes: two of them never act on the
   * same state. `work` must await nothing but its own queries, since writers of the ledger may be waiting for it.
   */
  alone<Result>(work: (queries: ConsoleQueries) => Promise<Result>): Promise<Result>;
}
