// The port for operating a ledger, beside servers that may be running on it: verify, digest, rebuild. Serving never sees
// these. Copying a whole ledger has a port of its own (`ledger-copy.ts`).

import type { Finding } from '../../ledger/audit.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import type { KeyStore } from '../key-store.ts';
import type { PostingsDigest } from './ledger-digest.ts';

/** How far a command has come. */
export interface Progress {
  /** What it is doing, such as `copying`. */
  readonly step: string;
  readonly done: number;
  readonly total: number;
  /** What is counted, such as `postings`. */
  readonly unit: string;
}

/** Called now and then. */
export type ReportProgress = (progress: Progress) => void;

export interface AuditReport {
  readonly endUsers: number;
  readonly postings: number;
  /** What is broken in the store itself, below the ledger: pages, indexes, the clock, derived tables. */
  readonly store: readonly string[];
}

export interface LedgerTools {
  /** Folds all postings once more, in one snapshot, and compares the result with what is stored. */
  audit(report: (finding: Finding) => void): Promise<AuditReport>;
  /**
   * Digests of all postings, in one snapshot.
   *
   * @param through the positions up to which to make digests; null for all that has happened
   */
  digest(through: readonly TransactionId[] | null): Promise<readonly PostingsDigest[]>;
  /** Rebuilds the totals from the postings. */
  rebuildTotals(): Promise<void>;
  close(): Promise<void>;
}

/** One ledger, as a store opens it for a command of an operator. Closed with `tools`. */
export interface OperatorStores {
  readonly tools: LedgerTools;
  readonly keys: KeyStore;
}

export interface AuditSummary extends AuditReport {
  /** How many places are broken, and what is wrong with one of them. */
  readonly broken: number;
  readonly example: string;
}

/** Runs an audit of which only the result matters, not each finding. */
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

/** What a backup holds, as it was verified. */
export interface BackupReport {
  readonly endUsers: number;
  readonly postings: number;
  readonly bytes: number;
  /** The latest instant that the ledger's clock had issued; null when the ledger was still empty. */
  readonly at: Instant | null;
}
