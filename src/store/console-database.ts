// The tables of the web console, and the same query interface for both stores. The console has its own database
// connections, so it takes none from the ledger.

import type { Kysely } from 'kysely';
import type { Role } from '../accounts/membership.ts';

/** Columns that end in `_at` are milliseconds since 1970. */
export interface ConsoleTables {
  readonly accounts: { readonly account: number; readonly name: string; readonly created_at: number };
  readonly console_users: {
    readonly id: string;
    readonly email: string;
    readonly password_hash: string;
    readonly created_at: number;
  };
  readonly console_sessions: {
    readonly token_sha256: string;
    readonly user_id: string;
    readonly created_at: number;
    readonly expires_at: number;
    readonly used_at: number;
    readonly browser: string;
  };
  readonly console_password_resets: {
    readonly token_sha256: string;
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
  readonly console_pending_users: {
    readonly token_sha256: string;
    readonly email: string;
    readonly password_hash: string;
    readonly account_name: string | null;
    readonly claimed_account: number | null;
    readonly invitation_sha256: string | null;
    readonly expires_at: number;
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
   * Runs `work` in a transaction. Only one such transaction runs at a time across all processes, so no two transactions
   * act on the same state. `work` must await nothing but its own queries, since writers of the ledger may be waiting
   * for the transaction.
   */
  alone<Result>(work: (queries: ConsoleQueries) => Promise<Result>): Promise<Result>;
}
