// The ports for copying a whole ledger: the source reads the rows in a fixed order, and the destination loads them. No
// server may run on either ledger during the copy. Balances are not copied: the destination computes them from the
// postings. The event log is not copied either.

import type { Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { Derivation } from '../event-log.ts';
import type { IdPosition } from '../transaction-ids.ts';
import type { AuditReport } from './ledger-tools.ts';

/** The postings of an end user, oldest first, and then a row that marks the end user as complete. */
export type LedgerRow =
  | { readonly kind: 'posting'; readonly user: EndUserKey; readonly posting: Posting }
  | { readonly kind: 'end-user'; readonly user: EndUserKey };

/** A row as the destination gets it: the last row of an end user contains more than the row from the source. */
export type CopiedRow =
  | Extract<LedgerRow, { kind: 'posting' }>
  | (Extract<LedgerRow, { kind: 'end-user' }> & {
      /** The progress of event derivation for the end user. */
      readonly events: Pick<Derivation, 'next' | 'dueAt'>;
    });

export interface RowCounts {
  readonly endUsers: number;
  readonly postings: number;
}

/**
 * The other tables that are copied, and the columns of each, key first. Each table comes after the tables that it
 * refers to. Sessions, mailed links and rate limits are not copied: console users must sign in to the copy again. The
 * state of webhook deliveries is not copied, because it refers to events.
 */
export const COPIED_TABLES = {
  accounts: ['account', 'name', 'created_at', 'expiring_days'],
  api_keys: [
    'key_id',
    'account',
    'scope',
    'secret_sha256',
    'hint',
    'name',
    'created_at',
    'created_by',
    'revoked_at',
    'revoked_by',
    'last_used_at',
  ],
  imports: [
    'import_id',
    'account',
    'file_name',
    'rows_sha256',
    'row_count',
    'rows_done',
    'rows_granted',
    'started_at',
    'updated_at',
  ],
  thresholds: ['account', 'below', 'created_at'],
  webhook_endpoints: [
    'endpoint_id',
    'account',
    'url',
    'types',
    'secret',
    'previous_secret',
    'previous_secret_expires_at',
    'created_at',
    'created_by',
    'paused_at',
    'paused_because',
  ],
  console_users: ['id', 'email', 'password_hash', 'created_at'],
  console_members: ['user_id', 'account', 'role', 'created_at'],
  console_invitations: ['token_sha256', 'account', 'role', 'created_at', 'expires_at', 'used_at'],
} as const satisfies Record<string, readonly string[]>;

export type CopiedTable = keyof typeof COPIED_TABLES;

export const COPIED_TABLE_NAMES = Object.keys(COPIED_TABLES) as readonly CopiedTable[];

export interface TableRow {
  readonly table: CopiedTable;
  /** In the order of the columns in `COPIED_TABLES`. */
  readonly values: readonly (string | number | null)[];
}

/** The maximum number of rows in a batch; an end user with more rows continues in the next batch. */
export const ROWS_PER_BATCH = 1_000;

export interface CopySource {
  /** The name of the ledger in messages, without a password. */
  readonly name: string;
  /**
   * Whether the ledger has a test clock, and the copy therefore must have one. If false, the copy must not have one. If
   * null, the copy may have one or not.
   */
  readonly hasTestClock: boolean | null;
  /** The latest instant that the ledger has used, and the last sequence number of that instant. */
  clock(): Promise<IdPosition>;
  counts(): Promise<RowCounts>;
  /** The rows of the end users after `after`, sorted by account and end user, from one snapshot. */
  rows(after: EndUserKey | null): AsyncIterable<readonly LedgerRow[]>;
  /** Sorted by the bytes of account, end user and key. */
  idempotencyRecords(): AsyncIterable<readonly IdempotencyRecord[]>;
  /** The rows of all copied tables, in any order. They are few enough to be read into memory at once. */
  tableRows(): Promise<readonly TableRow[]>;
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  close(): Promise<void>;
}

/**
 * The ledger that a copy creates. Until the copy is finished, the ledger contains a mark with the source and the last
 * copied end user, and no store opens it.
 */
export interface CopyDestination extends CopySource {
  /**
   * Marks an empty ledger as an unfinished copy, or resumes an earlier copy of the same source.
   *
   * @param source identifies the source, and changes whenever the source changes
   * @returns the last end user that was copied completely; null if there is none
   * @throws CannotOpen if the destination is neither empty nor an unfinished copy of this source
   */
  begin(source: string): Promise<EndUserKey | null>;
  /** Writes further rows. All rows up to the next `commit` are in one transaction. */
  load(rows: readonly CopiedRow[]): Promise<void>;
  /** Commits the loaded rows, and updates the mark to `last`. No event will be derived from these rows. */
  commit(last: EndUserKey): Promise<void>;
  /** Replaces all idempotency records in one transaction, including those of an earlier run of the copy. */
  loadIdempotencyRecords(records: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void>;
  /** Replaces the rows of all copied tables in one transaction. */
  loadTables(rows: readonly TableRow[]): Promise<void>;
  /** Does nothing if the clock is already later. */
  moveClock(position: IdPosition): Promise<void>;
  rebuildTotals(): Promise<void>;
  /** Removes the mark, so that the ledger can be opened. */
  finish(): Promise<void>;
}

export function* inBatches<Row>(rows: Iterable<Row>): Generator<readonly Row[]> {
  let batch: Row[] = [];
  for (const row of rows) {
    batch.push(row);
    if (batch.length < ROWS_PER_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
