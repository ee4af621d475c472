// The port for copying a whole ledger: give out its rows in one order, and take them in. A ledger that is copied is not
// served meanwhile. Balances are not copied: the destination folds them from the postings.

import type { Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { IdPosition } from '../transaction-ids.ts';
import type { AuditReport } from './ledger-tools.ts';

/** The postings of an end user come oldest first, and then a sign that the end user is complete. */
export type LedgerRow =
  | { readonly kind: 'posting'; readonly user: EndUserKey; readonly posting: Posting }
  | { readonly kind: 'end-user'; readonly user: EndUserKey };

export interface RowCounts {
  readonly endUsers: number;
  readonly postings: number;
}

/**
 * The tables beside the end users that are copied, and the columns of each, its key first. Each table follows those that it
 * refers to. Sessions, mailed links and rate limits are not copied: console users sign in again at the copy.
 */
export const COPIED_TABLES = {
  accounts: ['account', 'name', 'created_at'],
  api_keys: ['key_id', 'account', 'scope', 'secret_sha256', 'hint', 'name', 'created_at', 'revoked_at', 'last_used_at'],
  console_users: ['id', 'email', 'password_hash', 'email_confirmed_at', 'created_at'],
  console_members: ['user_id', 'account', 'role', 'created_at'],
  console_invitations: ['token_sha256', 'account', 'role', 'created_at', 'expires_at', 'used_at'],
} as const satisfies Record<string, readonly string[]>;

export type CopiedTable = keyof typeof COPIED_TABLES;

export const COPIED_TABLE_NAMES = Object.keys(COPIED_TABLES) as readonly CopiedTable[];

export interface TableRow {
  readonly table: CopiedTable;
  /** In the order of the columns. */
  readonly values: readonly (string | number | null)[];
}

/** Rows that travel together. An end user may have more: then it goes on in the next batch. */
export const ROWS_PER_BATCH = 1_000;

export interface CopySource {
  /** For messages: what the operator knows it by, without a password. */
  readonly name: string;
  /** The latest instant that the ledger has given out. */
  clock(): Promise<IdPosition>;
  counts(): Promise<RowCounts>;
  /** The rows of the end users behind `after`, by account and end user, in one snapshot. */
  rows(after: EndUserKey | null): AsyncIterable<readonly LedgerRow[]>;
  /** By account, end user and key in the order of their bytes. */
  idempotencyRecords(): AsyncIterable<readonly IdempotencyRecord[]>;
  /** Of all copied tables, in any order. Few enough to be held in memory. */
  tableRows(): Promise<readonly TableRow[]>;
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  close(): Promise<void>;
}

/**
 * A ledger that is made by a copy. It has a mark that names the source and the last end user that was copied; as long as
 * the mark is there, no store opens the ledger.
 */
export interface CopyDestination extends CopySource {
  /**
   * Marks an empty ledger as an unfinished copy, or resumes an earlier copy of the same source.
   *
   * @param source a name that the source keeps for as long as nothing in it changes
   * @returns the last end user that was copied completely; null if there is none
   * @throws CannotOpen if the destination is neither empty nor a copy of this source
   */
  begin(source: string): Promise<EndUserKey | null>;
  /** Writes rows that follow those of the last call, all in one transaction until `commit`. */
  load(rows: readonly LedgerRow[]): Promise<void>;
  /** Commits what was loaded, together with the mark that everything up to `last` is there. */
  commit(last: EndUserKey): Promise<void>;
  /** Replaces all idempotency records, in one transaction: an interrupted copy begins with them again. */
  loadIdempotencyRecords(records: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void>;
  /** Replaces the rows of all copied tables, in one transaction. */
  loadTables(rows: readonly TableRow[]): Promise<void>;
  /** Moves the clock up to `position`, unless it is there already. */
  moveClock(position: IdPosition): Promise<void>;
  rebuildTotals(): Promise<void>;
  /** Removes the mark: from now on it is a ledger like any other. */
  finish(): Promise<void>;
}

/** Gathers rows into batches of a bounded size. */
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
