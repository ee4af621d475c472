// The invariants of the ledger, with the numbers that `scrip verify` reports.
//
//   1  Until a period ends, its remaining credits are the sum of the `amount` of its postings, and its held credits are
//      the sum of the `held` of these postings. At all times, 0 <= held <= remaining <= amount. Closing a hold reduces
//      `held` by exactly the hold's credits. Refunds never exceed the spent credits.
//   2  The balance is the sum of the spendable credits of all cycles that have not ended. The balance plus the held
//      credits of these cycles is the sum of the `amount` of all postings to their current periods, and is at most
//      2^53−1.
//   3  An end user has at most one active recurring cycle. Each period of a cycle starts when the previous one ends.
//   4  A posting never changes, and the times of an end user's postings never go backwards.

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
