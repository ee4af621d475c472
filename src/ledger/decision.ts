// A decision: the outcome of a command, and the postings to store.

import assert from 'node:assert/strict';
import type { Accepted, Add, Outcome, Refusal, StartCycle, WriteCommand } from './command.ts';
import { type Cycle, type CycleType, newCycle } from './cycle.ts';
import type { Instant } from './instant.ts';
import { isInRange, type Plan, planOfText, planText } from './plan.ts';
import { type Entry, openingOf, type Posting } from './posting.ts';
import type { TransactionId } from './transaction-id.ts';

export interface Decision {
  readonly outcome: Outcome;
  /** In the order in which they are applied; empty if nothing changes. */
  readonly postings: readonly Posting[];
}

/** The instant of a decision, and a source of ascending transaction IDs. */
export interface Moment {
  readonly now: Instant;
  /** The creation time of new idempotency records; `now` if absent. */
  readonly recordedAt?: Instant;
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

/** Commands with the same plan share one object, because the stores cache many cycles. */
export function planOf(command: Add | StartCycle): Plan {
  const { amount, validityDays, validityMonths = null } = command;
  const rolloverMax = command.kind === 'start-cycle' ? (command.rolloverMax ?? 0) : 0;
  return planOfText(planText({ amount, validityDays, validityMonths, rolloverMax }));
}

export function opened(type: CycleType, plan: Plan, entry: Entry): { cycle: Cycle; opening: Posting } {
  assert(isInRange(plan), 'amounts are validated at the API');
  const cycle = newCycle(entry.transactionId, type, plan);
  return { cycle, opening: openingOf(cycle, entry) };
}
