// The interface for the operator's commands that can run while servers use the ledger: `scrip verify`, `scrip digest`
// and `scrip migrate --totals`.

import type { Finding } from '../../ledger/audit.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import type { KeyStore } from '../key-store.ts';
import type { PostingsDigest } from './ledger-digest.ts';

export interface Progress {
  /** The current step, such as `copying`. */
  readonly step: string;
  readonly done: number;
  readonly total: number;
  /** The unit of `done` and `total`, such as `postings`. */
  readonly unit: string;
}

export type ReportProgress = (progress: Progress) => void;

export interface AuditReport {
  readonly endUsers: number;
  readonly postings: number;
  /** One sentence for each problem outside the postings: in database pages, indexes, the clock or derived tables. */
  readonly store: readonly string[];
}

export interface LedgerTools {
  /**
   * Computes each end user's state from the postings of one database snapshot, and compares the states with the
   * stored rows.
   */
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  /**
   * Computes all digests from one database snapshot.
   *
   * @param through one ID for each digest: the digest covers the transactions up to this ID. Null for a single digest
   * of all postings.
   */
  digest(through: readonly TransactionId[] | null): Promise<readonly PostingsDigest[]>;
  rebuildTotals(): Promise<void>;
  close(): Promise<void>;
}

export interface ToolsOptions {
  /** Whether to create a missing ledger, instead of reporting an error. */
  readonly create: boolean;
  /**
   * True if the ledger must have a test clock, false if it must not have one; null or absent if either is accepted. A
   * new ledger gets a test clock only if `testClock` is true.
   */
  readonly testClock?: boolean | null;
}

/** The parts of a store that an operator command uses. `tools.close` closes both. */
export interface OperatorStores {
  readonly tools: LedgerTools;
  readonly keys: KeyStore;
}

interface AuditSummary extends AuditReport {
  /** The number of problems: the findings, plus the messages in `store`. */
  readonly broken: number;
  readonly example: string;
}

export async function auditSummary(
  audit: (report: (finding: Finding) => void) => AuditReport | Promise<AuditReport>,
): Promise<AuditSummary> {
  let findings = 0;
  let example = '';
  const report = await audit(({ message }) => {
    if (findings === 0) example = message;
    findings += 1;
  });
  return { ...report, broken: findings + report.store.length, example: report.store[0] ?? example };
}

/**
 * Returns the message for stored rows that do not belong to any end user with postings.
 *
 * @param rows describes the stored rows, such as `stored cycles`
 * @param owned describes the rows that the audit has read for the end users, such as `cycles of end users with
 * postings`
 */
export function rowsDiffer(rows: string, stored: number, owned: string, found: number): string {
  return `the number of ${rows} (${stored}) differs from the number of ${owned} (${found})`;
}

export interface BackupReport {
  readonly endUsers: number;
  readonly postings: number;
  readonly bytes: number;
  /** The latest instant of the ledger's clock; null for an empty ledger. */
  readonly at: Instant | null;
}
