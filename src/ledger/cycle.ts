// A cycle: a time span [start, end) with an amount of credits. A recurring cycle has consecutive periods, one of which
// is the current one.
//
//   one-time:   active ──end──▶ ended
//   recurring:  active ──end──▶ active, in its next period
//               active ──end──▶ superseded and ended, if a plan is scheduled: the plan starts a new cycle
//               active ──stop──▶ canceled ──end──▶ ended
//                                    └── another recurring cycle starts ──▶ superseded ──end──▶ ended

import { type Amount, isAmount } from './amount.ts';
import { DAY_MS, INSTANT_MAX, type Instant, isInstant, LAST_INSTANT, monthsBetween } from './instant.ts';
import { assertInvariant, type Invariant } from './invariant.ts';
import {
  assertPlan,
  endOf,
  isInRange,
  isValidity,
  PLAN_RULE,
  type Plan,
  type ScheduledPlan,
  VALIDITY_RULE,
} from './plan.ts';
import { instantOf, renewalId, type TransactionId } from './transaction-id.ts';

export type CycleType = 'one-time' | 'recurring';

/**
 * A canceled cycle becomes superseded when another recurring cycle starts. An active cycle becomes superseded when its
 * scheduled plan begins. Responses show canceled and superseded cycles as `canceled`. A repeated stop returns a
 * canceled cycle, but never a superseded one.
 */
export type CycleStatus = 'active' | 'canceled' | 'superseded';

export interface Cycle {
  /** The ID of the transaction that started the first period. */
  readonly id: TransactionId;
  /** The number of the current period, counted from 0. */
  readonly period: number;
  readonly type: CycleType;
  readonly status: CycleStatus;
  /** The credits at the start of the period: those of the plan, and those that rolled over. */
  readonly amount: Amount;
  /** The credits that are not spent yet, held credits included. */
  readonly remaining: Amount;
  /** The credits that holds have set aside. Not updated after the cycle has ended. */
  readonly held: Amount;
  readonly start: Instant;
  readonly end: Instant;
  readonly plan: Plan;
  /** The plan that begins at the end of the period; null if none is scheduled. */
  readonly next: ScheduledPlan | null;
}

/** The start of the first period. A renewal does not change this instant. */
export function createdAt(cycle: Cycle): Instant {
  return instantOf(cycle.id);
}

export function spendable({ remaining, held }: Cycle): Amount {
  return remaining - held;
}

export function hasEnded(cycle: Cycle, now: Instant): boolean {
  return cycle.end <= now;
}

export function isActiveRecurring({ type, status }: Cycle): boolean {
  return type === 'recurring' && status === 'active';
}

/**
 * Whether another period follows the current one: the next period of the cycle, or the first period of the scheduled
 * plan. Nothing follows a cycle that ends at `INSTANT_MAX`.
 */
export function renews(cycle: Cycle): boolean {
  return isActiveRecurring(cycle) && cycle.end < INSTANT_MAX;
}

/** Whether a decision at `now` or later can depend on the cycle. The stores load only live cycles. */
export function isLive(cycle: Cycle, now: Instant): boolean {
  return cycle.end > now || renews(cycle);
}

/**
 * The number of periods of `cycle` that follow its current period and begin at or before `now`. Assumes that `cycle`
 * has no scheduled plan. Does not use a loop, so the computation is as fast after ten years of downtime as after one
 * second.
 */
export function periodsMissed(cycle: Cycle, now: Instant): number {
  if (!renews(cycle) || !hasEnded(cycle, now)) return 0;
  // A period that begins at `INSTANT_MAX` would have no duration, so it does not count.
  const until = Math.min(now, LAST_INSTANT);
  const { validityDays, validityMonths } = cycle.plan;
  return validityMonths === null
    ? Math.floor((until - cycle.end) / ((validityDays as number) * DAY_MS)) + 1
    : Math.floor(monthsBetween(createdAt(cycle), until) / validityMonths) - cycle.period;
}

/**
 * The cycle `count` periods later, if no credits are spent before then. Pass `cycle` as it is at the end of its current
 * period. At the end of each period, up to `rolloverMax` spendable credits roll over, and the rest expire. The new
 * amount is therefore the spendable credits of `cycle` plus `count` times the credits of the plan, but at most the
 * credits of the plan plus `rolloverMax`.
 */
export function periodAfter(cycle: Cycle, count: number): Cycle {
  const { plan } = cycle;
  const period = cycle.period + count;
  const start = endOf(createdAt(cycle), plan, period);
  const end = endOf(createdAt(cycle), plan, period + 1);
  const amount = Math.min(plan.amount + plan.rolloverMax, count * plan.amount + spendable(cycle));
  return { ...cycle, period, amount, remaining: amount, held: 0, start, end };
}

/** The cycle that the scheduled plan starts. Every process derives the same cycle ID from the arguments. */
export function scheduledCycle({ end: start }: Cycle, { id, plan }: ScheduledPlan): Cycle {
  return newCycle(renewalId(id, start), 'recurring', plan);
}

/** A new cycle in its first period. The period starts at the instant that `id` contains. */
export function newCycle(id: TransactionId, type: CycleType, plan: Plan): Cycle {
  const { amount } = plan;
  const start = instantOf(id);
  const end = endOf(start, plan);
  return { id, period: 0, type, status: 'active', amount, remaining: amount, held: 0, start, end, plan, next: null };
}

/**
 * Applies the renewals and the change of plan that are due at `now`. If any of these are due, `cycle` must have the
 * credits that it had at the end of its current period.
 */
export function periodAt(cycle: Cycle, now: Instant): Cycle {
  if (!renews(cycle) || !hasEnded(cycle, now)) return cycle;
  return cycle.next === null
    ? periodAfter(cycle, periodsMissed(cycle, now))
    : periodAt(scheduledCycle(cycle, cycle.next), now);
}

/**
 * The order in which credits are spent: first by the start of the current period, then by cycle ID, which is the order
 * of creation. The order is total, so every store spends credits in the same order.
 */
export function spendingOrder(a: Cycle, b: Cycle): number {
  return a.start - b.start || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/**
 * Sorts `cycles` into spending order, in place. Checks the order first, because cycles are nearly always sorted and the
 * check is much cheaper than a sort.
 */
export function inSpendingOrder(cycles: Cycle[]): Cycle[] {
  for (let index = 1; index < cycles.length; index++) {
    if (spendingOrder(cycles[index - 1] as Cycle, cycles[index] as Cycle) > 0) return cycles.sort(spendingOrder);
  }
  return cycles;
}

const CYCLE_RULES: readonly (readonly [Invariant, sentence: string, holds: (cycle: Cycle) => boolean])[] = [
  [1, 'a cycle starts with 1 to 2^53−1 credits', ({ amount }) => isAmount(amount)],
  [1, PLAN_RULE, ({ plan }) => isInRange(plan)],
  [
    1,
    'a period starts with the credits of its plan and at most `rolloverMax` more',
    ({ period, amount, plan }) =>
      amount >= plan.amount && amount <= plan.amount + (period === 0 ? 0 : plan.rolloverMax),
  ],
  [
    1,
    'the remaining credits are between 0 and the amount',
    (c) => Number.isSafeInteger(c.remaining) && c.remaining >= 0 && c.remaining <= c.amount,
  ],
  [
    1,
    'the held credits are between 0 and the remaining credits',
    (c) => Number.isSafeInteger(c.held) && c.held >= 0 && c.held <= c.remaining,
  ],
  [4, VALIDITY_RULE, ({ plan }) => isValidity(plan)],
  [4, 'the start of a cycle is a valid instant', ({ start }) => isInstant(start)],
  [4, 'a cycle ends when its validity ends', endsWhenDue],
  [
    3,
    'periods are numbered from 0, and each period starts when the previous one ends',
    (cycle) => cycle.period >= 0 && cycle.start === endOf(createdAt(cycle), cycle.plan, cycle.period),
  ],
  [
    3,
    'a one-time cycle has one period and no rollover, and is never stopped',
    (c) => c.type === 'recurring' || (c.period === 0 && c.plan.rolloverMax === 0 && c.status === 'active'),
  ],
  [3, 'only a cycle that renews can have a scheduled plan', (c) => c.next === null || renews(c)],
];

/** The rules that a cycle breaks; empty for a cycle that Scrip wrote. */
export function brokenRules(cycle: Cycle): (readonly [invariant: Invariant, sentence: string])[] {
  return CYCLE_RULES.filter(([, , holds]) => !holds(cycle)).map(([invariant, sentence]) => [invariant, sentence]);
}

/** Asserts all rules. Call this function when a cycle or a period is opened. */
export function assertCycle(cycle: Cycle): void {
  for (const [invariant, sentence, holds] of CYCLE_RULES) assertInvariant(invariant, holds(cycle), sentence);
}

function endsWhenDue(cycle: Cycle): boolean {
  const { period, start, end, plan } = cycle;
  // If the validity is in days, all periods are equally long, so `start` and `plan` determine the end. If the validity
  // is in months, the end is computed from the creation of the cycle.
  const due = plan.validityMonths === null ? endOf(start, plan) : endOf(createdAt(cycle), plan, period + 1);
  return start < end && end === due;
}

/** Asserts only the rules that decisions depend on. Called when a store reads a cycle; the audit checks all rules. */
export function assertReadable(cycle: Cycle): void {
  const { amount, remaining, held } = cycle;
  assertInvariant(1, remaining >= 0 && remaining <= amount, 'the remaining credits are between 0 and the amount');
  assertInvariant(1, held >= 0 && held <= remaining, 'the held credits are between 0 and the remaining credits');
  assertInvariant(4, endsWhenDue(cycle), 'a cycle ends when its validity ends');
  if (cycle.next !== null) assertPlan(cycle.next.plan);
}
