// A hold sets credits aside for work whose cost is not known yet.
//
//   open ──capture──▶ captured: the cost is spent, and the rest returns to the cycles that it came from
//        ──release──▶ released: all credits return
//        ──time─────▶ lapsed: all credits return
//
// Credits that return to an ended cycle expire immediately.

import assert from 'node:assert/strict';
import type { Amount } from './amount.ts';
import type { Instant } from './instant.ts';
import { LAPSE_SEQUENCE, type TransactionId, transactionId } from './transaction-id.ts';

/** The maximum number of open holds per end user. */
export const OPEN_HOLDS_MAX = 1_000;

export const HOLD_SECONDS_DEFAULT = 900;
/** 30 days. */
export const HOLD_SECONDS_MAX = 2_592_000;

export interface HoldPart {
  readonly cycleId: TransactionId;
  /** The credits come from this period of the cycle. Held credits never return to a later period. */
  readonly period: number;
  readonly amount: Amount;
  /** The end of the period. */
  readonly end: Instant;
}

export interface Hold {
  /** The ID of the transaction that created the hold. */
  readonly id: TransactionId;
  readonly expiresAt: Instant;
  /** One part for each cycle that the credits come from, in spending order. */
  readonly parts: readonly HoldPart[];
}

export type HoldEnd = 'captured' | 'released' | 'lapsed';

export function heldBy({ parts }: Hold): Amount {
  return parts.reduce((sum, { amount }) => sum + amount, 0);
}

/** The credits that are held at `at`. A hold that expires at or before `at` does not count. */
export function heldAt(holds: readonly Hold[], at: Instant): Amount {
  let total = 0;
  for (const hold of holds) if (hold.expiresAt > at) total += heldBy(hold);
  assert(Number.isSafeInteger(total), 'the held credits of one end user stay within 2^53−1');
  return total;
}

/**
 * The ID of the transaction in which a hold lapses. The ID is derived from the hold, so every process computes the same
 * ID.
 */
export function lapseId({ id, expiresAt }: Hold): TransactionId {
  return transactionId({ at: expiresAt, sequence: LAPSE_SEQUENCE, tail: id.slice(24) });
}

/**
 * The order in which holds lapse. Holds that expire at the same instant are ordered by the last digits of their IDs.
 * These digits are random, so a tie is practically impossible.
 */
export function lapseOrder(a: Hold, b: Hold): number {
  if (a.expiresAt !== b.expiresAt) return a.expiresAt - b.expiresAt;
  // The IDs of lapses at the same instant differ only in their last 12 digits.
  const [first, second] = [a.id.slice(24), b.id.slice(24)];
  return first < second ? -1 : first > second ? 1 : 0;
}
