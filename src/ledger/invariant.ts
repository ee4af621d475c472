// The invariants of the ledger, with the numbers that `scrip verify` reports.
//
//   1  Until a cycle ends, its postings sum to its remaining credits and to its held credits, and
//      0 <= held <= remaining <= amount. Closing a hold reduces `held` by exactly its credits, and no more is
//      refunded than was spent.
//   2  The active balance is the sum over the cycles that have not ended, and equals the sum of their postings.
//   3  An end user has at most one active recurring cycle, and each of its periods starts when the previous one ends.
//   4  A posting never changes, and the times of an end user never go backwards.

import { AssertionError } from 'node:assert/strict';

export type Invariant = 1 | 2 | 3 | 4;

/** A store stops writing after this error. The audit reports the error and continues. */
export class InvariantViolation extends AssertionError {
  readonly invariant: Invariant;

  constructor(invariant: Invariant, message: string) {
    super({ message });
    this.invariant = invariant;
  }
}

export function assertInvariant(invariant: Invariant, holds: boolean, message: string): asserts holds {
  if (!holds) throw new InvariantViolation(invariant, message);
}
