// Commands of the operator that can run while servers run on the ledger: verify, digest and rebuild.

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

/** Called from time to time with the progress. */
export type ReportProgress = (progress: Progress) => void;

export interface AuditReport {
  readonly endUsers: number;
  readonly postings: number;
  /** One sentence for each fault of the store itself: in pages, indexes, the clock or derived tables. */
  readonly store: readonly string[];
}

export interface LedgerTools {
  /** Applies all postings again in one snapshot, and compares the result with the stored rows. */
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  /**
   * All digests are from one snapshot.
   *
   * @param through the positions up to which digests are computed; null for one digest of all postings
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
   * new ledger has a test clock only if this is true.
   */
  readonly testClock?: boolean | null;
}

/** The ports of one ledger for a command of the operator. `tools.close` closes both. */
export interface OperatorStores {
  readonly tools: LedgerTools;
  readonly keys: KeyStore;
}

export interface AuditSummary extends AuditReport {
  /** The number of faults and findings, and the text of one of them. */
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

export interface BackupReport {
  readonly endUsers: number;
  readonly postings: number;
  readonly bytes: number;
  /** The latest instant that the ledger has used; null for an empty ledger. */
  readonly at: Instant | null;
}
