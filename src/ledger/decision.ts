// A decision: an outcome and the postings that cause it.

import assert from 'node:assert/strict';
import { isAmount } from './amount.ts';
import type { Accepted, Outcome, Refusal, WriteCommand } from './command.ts';
import { type Cycle, type CycleType, endOf } from './cycle.ts';
import type { Instant } from './instant.ts';
import { type Entry, openingOf, type Posting } from './posting.ts';
import type { TransactionId } from './transaction-id.ts';

export interface Decision {
  readonly outcome: Outcome;
  /** In the order in which they apply; empty if nothing changes. */
  readonly postings: readonly Posting[];
}

/** The instant of a decision, and a source of ascending transaction ids. */
export interface Moment {
  readonly now: Instant;
  readonly nextId: () => TransactionId;
}

export function accepted(
  transactionId: TransactionId | null,
  postings: readonly Posting[],
  result: Pick<Accepted, 'cycle' | 'hold' | 'refund'> = {},
): Decision {
  return { outcome: { refused: null, transactionId, ...result }, postings };
}

export function refused(refusal: Refusal): Decision {
  return { outcome: refusal, postings: [] };
}

export function entryOf({ kind, actor, note = null }: WriteCommand, { now, nextId }: Moment): Entry {
  return { transactionId: nextId(), kind, createdAt: now, actor, note };
}

/** Returns the cycle that a transaction opens, and the posting that opens it. */
export function opened(
  type: CycleType,
  { amount, validityDays }: Pick<Cycle, 'amount' | 'validityDays'>,
  entry: Entry,
): { cycle: Cycle; opening: Posting } {
  assert(isAmount(amount), 'amounts are validated at the API');
  const { transactionId: id, createdAt: start } = entry;
  const end = endOf(start, validityDays);
  const stay = { period: 0, type, status: 'active', amount, remaining: amount, held: 0, start, end } as const;
  const cycle: Cycle = { id, ...stay, validityDays };
  return { cycle, opening: openingOf(cycle, entry) };
}
