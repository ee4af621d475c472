// A cycle: a time span [start, end) with an amount of credits. A one-time cycle has one period. A recurring cycle has
// one period after another, and is always in one of them.
//
//   one-time:   active ──end──▶ ended
//   recurring:  active ──end──▶ active, in its next period
//               active ──stop──▶ canceled ──end──▶ ended
//                                    └── another recurring cycle starts ──▶ superseded ──end──▶ ended

import { type Amount, isAmount } from './amount.ts';
import { DAY_MS, INSTANT_MAX, type Instant, isInstant, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import { assertInvariant, type Invariant } from './invariant.ts';
import { instantOf, type TransactionId } from './transaction-id.ts';

export type CycleType = 'one-time' | 'recurring';

/**
 * A canceled cycle becomes `superseded` when another recurring cycle starts. Responses show it as canceled, but
 * stopping again does not find it.
 */
export type CycleStatus = 'active' | 'canceled' | 'superseded';

export interface Cycle {
  /** The id of the transaction that started the first period. */
  readonly id: TransactionId;
  /** The number of the current period, from 0. */
  readonly period: number;
  readonly type: CycleType;
  readonly status: CycleStatus;
  /** The credits at the start of the period. */
  readonly amount: Amount;
  /** The credits that are not spent yet, held credits included. */
  readonly remaining: Amount;
  /** The credits that holds have set aside. Not updated after the cycle has ended. */
  readonly held: Amount;
  readonly start: Instant;
  readonly end: Instant;
  readonly validityDays: number;
}

/** The instant at which `/add` or `/start-cycle` created the cycle. It stays the same in later periods. */
export function createdAt(cycle: Cycle): Instant {
  return instantOf(cycle.id);
}

/** The end of a cycle: the first instant at which its credits no longer count. */
export function endOf(start: Instant, validityDays: number): Instant {
  return Math.min(start + validityDays * DAY_MS, INSTANT_MAX);
}

/** The credits that can be spent. */
export function spendable({ remaining, held }: Cycle): Amount {
  return remaining - held;
}

export function hasEnded(cycle: Cycle, now: Instant): boolean {
  return cycle.end <= now;
}

export function isActiveRecurring({ type, status }: Cycle): boolean {
  return type === 'recurring' && status === 'active';
}

/** Whether the cycle renews at its end. A cycle that ends at the last instant never renews. */
export function renews(cycle: Cycle): boolean {
  return isActiveRecurring(cycle) && cycle.end < INSTANT_MAX;
}

/** Whether a decision at `now` or later can depend on the cycle. The stores load only live cycles. */
export function isLive(cycle: Cycle, now: Instant): boolean {
  return cycle.end > now || renews(cycle);
}

/**
 * The number of periods that have begun after the current period of `cycle`, up to `now`. Computed without a loop, so
 * that ten years of downtime cost no more than a second.
 */
export function periodsMissed(cycle: Cycle, now: Instant): number {
  if (!renews(cycle) || !hasEnded(cycle, now)) return 0;
  // No period begins at the last instant, since it would have no duration.
  return Math.floor((Math.min(now, LAST_INSTANT) - cycle.end) / (cycle.validityDays * DAY_MS)) + 1;
}

/** The cycle `count` periods later, unspent. Leftover credits are not carried over. */
export function periodAfter(cycle: Cycle, count: number): Cycle {
  const start = cycle.end + (count - 1) * cycle.validityDays * DAY_MS;
  const end = endOf(start, cycle.validityDays);
  return { ...cycle, period: cycle.period + count, remaining: cycle.amount, held: 0, start, end };
}

/**
 * The order in which credits are spent: by the start of the cycle or period, then by cycle id, which is the order of
 * creation. If a cycle starts at the same instant as a new period of an older cycle, the older cycle comes first. The
 * order is total, so every store spends in the same order.
 */
export function burnOrder(a: Cycle, b: Cycle): number {
  return a.start - b.start || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/**
 * Sorts into burn order, in place. Checks the order first: rows are nearly always sorted, and the check is much
 * cheaper than a sort.
 */
export function inBurnOrder(cycles: Cycle[]): Cycle[] {
  for (let index = 1; index < cycles.length; index++) {
    if (burnOrder(cycles[index - 1] as Cycle, cycles[index] as Cycle) > 0) return cycles.sort(burnOrder);
  }
  return cycles;
}

const CYCLE_RULES: readonly (readonly [Invariant, sentence: string, holds: (cycle: Cycle) => boolean])[] = [
  [1, 'a cycle starts with 1 to 2^53−1 credits', ({ amount }) => isAmount(amount)],
  [
    1,
    'what remains is between 0 and the amount',
    (c) => Number.isSafeInteger(c.remaining) && c.remaining >= 0 && c.remaining <= c.amount,
  ],
  [
    1,
    'what is held is between 0 and what remains',
    (c) => Number.isSafeInteger(c.held) && c.held >= 0 && c.held <= c.remaining,
  ],
  [
    4,
    'a cycle is valid for a whole number of days',
    ({ validityDays: days }) => Number.isSafeInteger(days) && days >= 1 && days <= VALIDITY_DAYS_MAX,
  ],
  [4, 'the start of a cycle is a valid instant', ({ start }) => isInstant(start)],
  [4, 'a cycle ends when its validity is over', (c) => c.start < c.end && c.end === endOf(c.start, c.validityDays)],
  [
    3,
    'periods are numbered from 0 and follow each other without a gap from the creation on',
    (c) => c.period >= 0 && c.start === createdAt(c) + c.period * c.validityDays * DAY_MS,
  ],
  [
    3,
    'a one-time cycle has one period and is never stopped',
    (c) => c.type === 'recurring' || (c.period === 0 && c.status === 'active'),
  ],
];

/** The rules that a cycle breaks; none for a cycle that Scrip wrote. */
export function brokenRules(cycle: Cycle): (readonly [invariant: Invariant, sentence: string])[] {
  return CYCLE_RULES.filter(([, , holds]) => !holds(cycle)).map(([invariant, sentence]) => [invariant, sentence]);
}

/** Asserts all rules. Called when a cycle or a period is opened. */
export function assertCycle(cycle: Cycle): void {
  for (const [invariant, sentence, holds] of CYCLE_RULES) assertInvariant(invariant, holds(cycle), sentence);
}

/** Asserts the rules that decisions depend on. Called when a cycle is read; the audit checks all rules. */
export function assertReadable({ amount, remaining, held, start, end, validityDays }: Cycle): void {
  assertInvariant(1, remaining >= 0 && remaining <= amount, 'what remains is between 0 and the amount');
  assertInvariant(1, held >= 0 && held <= remaining, 'what is held is between 0 and what remains');
  assertInvariant(4, start < end && end === endOf(start, validityDays), 'a cycle ends when its validity is over');
}
