// Types and functions for the audit tests. Each case is a handwritten ledger with the findings that the audit must
// report.

import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { findingsOf, type StoredEndUser } from './ledger-builders.ts';

export type Found = readonly [invariant: number, message: string];

export type Row = readonly [what: string, stored: StoredEndUser, ...found: Found[]];

export function findings(stored: StoredEndUser): Found[] {
  return findingsOf(stored).map(({ invariant, message }) => [invariant, message]);
}

export function left(cycle: Cycle, remaining: number, held = 0): Cycle {
  return { ...cycle, remaining, held };
}

export function by({ transactionId }: Posting, message: string): string {
  return `transaction ${transactionId} ${message}`;
}
