// The interface for queries on accounts, thresholds, webhooks, events and console users. The SQLite and PostgreSQL
// stores both implement it. The queries have their own database connections, so they never occupy a connection that the
// ledger needs.

import type { Generated, Kysely } from 'kysely';
import type { Role } from '../accounts/membership.ts';

/** Columns whose names end in `_at` contain milliseconds since 1970. */
export interface AccountTables {
  readonly accounts: {
    readonly account: number;
    readonly name: string;
    readonly created_at: number;
    readonly expiring_days: Generated<number>;
    readonly last_endpoint_id: Generated<number>;
  };
  readonly thresholds: { readonly account: number; readonly below: string; readonly created_at: number };
  readonly webhook_endpoints: {
    readonly endpoint_id: number;
    readonly account: number;
    readonly url: string;
    readonly types: string;
    readonly secret: string;
    readonly previous_secrets: string;
    readonly created_at: number;
    readonly created_by: string;
    readonly paused_at: number | null;
    readonly paused_because: string | null;
    readonly position: string | null;
    readonly changes: Generated<number>;
    readonly revision: Generated<number>;
    readonly leased_by: string | null;
    readonly leased_until: Generated<number>;
    readonly form_sha256: string | null;
    readonly rotation_form_sha256: string | null;
  };
  readonly webhook_pending: {
    readonly endpoint_id: number;
    readonly place: number;
    readonly event_id: string;
    readonly type: string;
    readonly end_user_id: string;
    readonly body: string;
    readonly attempts: number;
    readonly first_attempt_at: number | null;
    readonly next_attempt_at: number;
    readonly restart_revision: Generated<number>;
  };
  readonly webhook_deliveries: {
    readonly delivery_id: string;
    readonly endpoint_id: number;
    readonly event_id: string;
    readonly type: string;
    readonly body: string;
    readonly attempt: number;
    readonly at: number;
    readonly duration_ms: number;
    readonly status: number | null;
    readonly error: string | null;
    readonly answer: string;
  };
  /** The event log; see `EventLog`. */
  readonly events: {
    /** The numbers ascend within each part of the ledger. A part is the whole database or, on Citus, one shard. */
    readonly event: Generated<number>;
    readonly account: number;
    readonly id: string;
    readonly type: string;
    readonly at: number;
    readonly data: string;
    readonly recorded_at: number;
  };
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
    readonly inviter_id: string | null;
    readonly form_sha256: string | null;
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

export type AccountQueries = Kysely<AccountTables>;

export interface AccountDatabase extends AsyncDisposable {
  readonly queries: AccountQueries;
  /**
   * An SQL expression for the time of the database's clock, in milliseconds since 1970. All processes use this clock.
   */
  readonly clock: string;
  /**
   * Runs `work` in a database transaction. Across all processes, only one such transaction runs at a time. `work` must
   * not wait for anything except its own queries, because the open transaction can block writes to the ledger. `work`
   * must have no other effects than its queries, because it is called again after a deadlock.
   */
  alone<Result>(work: (queries: AccountQueries) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in a database transaction whose COMMIT does not wait for the disk. If the database server or its
   * machine crashes, the changes can be lost. Like `alone`, calls `work` again after a deadlock.
   */
  relaxed<Result>(work: (queries: AccountQueries) => Promise<Result>): Promise<Result>;
}
