// The interfaces for copying a whole ledger. The source reads the rows in a fixed order, and the destination stores
// them. During the copy, no server is allowed to use either ledger. Balances and the event log are not copied. The
// destination computes the balances from the postings.

import type { Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Derivation } from '../event-log.ts';
import type { IdPosition } from '../transaction-ids.ts';
import type { LedgerRow } from './ledger-row.ts';
import type { AuditReport } from './ledger-tools.ts';

/** A row that the destination stores. The `end-user` row also contains the progress of event derivation. */
export type CopiedRow =
  | Extract<LedgerRow, { kind: 'transaction' }>
  | (Extract<LedgerRow, { kind: 'end-user' }> & {
      readonly events: Pick<Derivation, 'next' | 'dueAt'>;
    });

export interface RowCounts {
  readonly endUsers: number;
  readonly postings: number;
}

/**
 * The tables that are copied in addition to the data of end users, and their columns. The columns of the primary key
 * come first. Each table comes after the tables that it refers to. Sessions, emailed links and the counts of sign-in
 * attempts are not copied: console users must sign in again on the copy. The state of webhook deliveries is not copied
 * either, because it refers to events, and events are not copied.
 */
export const COPIED_TABLES = {
  accounts: 'account, name, created_at, expiring_days, last_endpoint_id',
  api_keys:
    'key_id, account, scope, secret_sha256, hint, name, created_at, created_by, revoked_at, revoked_by, last_used_at',
  imports: 'import_id, account, file_name, rows_sha256, row_count, rows_done, rows_granted, started_at, updated_at',
  thresholds: 'account, below, created_at',
  webhook_endpoints:
    'endpoint_id, account, url, types, secret, previous_secrets, created_at, created_by, paused_at, paused_because',
  console_users: 'id, email, password_hash, created_at',
  console_members: 'user_id, account, role, created_at',
  console_invitations: 'token_sha256, account, role, created_at, expires_at, used_at, inviter_id',
} as const;

export type CopiedTable = keyof typeof COPIED_TABLES;

export const COPIED_TABLE_NAMES = Object.keys(COPIED_TABLES) as readonly CopiedTable[];

export interface TableRow {
  readonly table: CopiedTable;
  /** One value for each column of the table, in the order of `COPIED_TABLES`. */
  readonly values: readonly (string | number | null)[];
}

export interface CopySource {
  /** The file or the URL of the ledger, for messages. The URL contains no password. */
  readonly name: string;
  /**
   * Whether the ledger has a test clock. If true, its copy must have one; if false, its copy must not. If null, as for
   * demo data, either is accepted.
   */
  readonly hasTestClock: boolean | null;
  /** The latest instant of the ledger's clock, and the sequence number of the last transaction ID at this instant. */
  clock(): Promise<IdPosition>;
  counts(): Promise<RowCounts>;
  /**
   * The rows of the end users that sort after `after`, or of all end users if `after` is null. The rows are sorted by
   * account and end user, and come from one database snapshot.
   */
  rows(after: EndUserKey | null): AsyncIterable<readonly LedgerRow[]>;
  /** All idempotency records, sorted by account, end user and key. Keys are sorted in byte order. */
  idempotencyRecords(): AsyncIterable<readonly IdempotencyRecord[]>;
  /** The rows of the tables in `COPIED_TABLES`, in any order. These tables are small enough to fit into memory. */
  tableRows(): Promise<readonly TableRow[]>;
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  close(): Promise<void>;
}

/**
 * The ledger that a copy creates. Until the copy is finished, the ledger contains a mark with the source and the last
 * copied end user. Only the command that makes the copy can open a ledger with this mark.
 */
export interface CopyDestination extends CopySource {
  /**
   * Marks an empty ledger as an unfinished copy, or resumes an earlier copy of the same source.
   *
   * @param source a string that identifies the source and its current contents
   * @returns the last end user that was copied completely; null if there is none
   * @throws CannotOpen if the destination is neither empty nor an unfinished copy of this source
   */
  begin(source: string): Promise<EndUserKey | null>;
  /** Writes rows. All rows that are loaded between two calls to `commit` are in one database transaction. */
  load(rows: readonly CopiedRow[]): Promise<void>;
  /** Commits the loaded rows, and updates the mark to `last`. No event will be derived from the loaded rows. */
  commit(last: EndUserKey): Promise<void>;
  /** In one database transaction, replaces all idempotency records, including those from an earlier run of the copy. */
  loadIdempotencyRecords(records: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void>;
  /** Replaces the rows of all tables in `COPIED_TABLES`, in one database transaction. */
  loadTables(rows: readonly TableRow[]): Promise<void>;
  /** Moves the clock of the copy forward to `position`, unless the clock is already past it. */
  moveClock(position: IdPosition): Promise<void>;
  rebuildTotals(): Promise<void>;
  /** Removes the mark of an unfinished copy, so that servers can open the ledger. */
  finish(): Promise<void>;
}
