// A cycle: a stretch of time [start, end) with an amount of credits in it. A one-time cycle has one period; a
// recurring one has a period after another, and is always in one of them.
//
//   one-time:   active ──end──▶ over
//   recurring:  active ──end──▶ active, in its next period
//               active ──stop──▶ canceled ──end──▶ over
//                                    └── another recurring cycle starts ──▶ superseded ──end──▶ over

import { type Amount, isAmount } from './amount.ts';
import { DAY_MS, INSTANT_MAX, type Instant, isInstant, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import { assertInvariant, type Invariant } from './invariant.ts';
import { instantOf, type TransactionId } from './transaction-id.ts';

export type CycleType = 'one-time' | 'recurring';

/**
 * `superseded` marks a canceled cycle after which another was started: responses show it as canceled, and stopping again
 * no longer finds it.
 */
export type CycleStatus = 'active' | 'canceled' | 'superseded';

export interface Cycle {
  /** The transaction that started its first period. */
  readonly id: TransactionId;
  /** The period that it is in; 0 for the first. */
  readonly period: number;
  readonly type: CycleType;
  readonly status: CycleStatus;
  /** What the period started with. */
  readonly amount: Amount;
  /** What is left of it. */
  readonly remaining: Amount;
  readonly start: Instant;
  readonly end: Instant;
  readonly validityDays: number;
}

/** When `/add` or `/start-cycle` made it, whichever period this is. */
export function createdAt(cycle: Cycle): Instant {
  return instantOf(cycle.id);
}

/** The first instant at which a cycle that starts at `start` and is valid for `validityDays` is over. */
export function endOf(start: Instant, validityDays: number): Instant {
  return Math.min(start + validityDays * DAY_MS, INSTANT_MAX);
}

export function hasEnded(cycle: Cycle, now: Instant): boolean {
  return cycle.end <= now;
}

export function isActiveRecurring({ type, status }: Cycle): boolean {
  return type === 'recurring' && status === 'active';
}

/** Whether it will be renewed at its end. A cycle whose end lies past the last instant never is. */
export function renews(cycle: Cycle): boolean {
  return isActiveRecurring(cycle) && cycle.end < INSTANT_MAX;
}

/** Whether a decision at `now` or later can depend on it. The stores load these cycles and no others. */
export function isLive(cycle: Cycle, now: Instant): boolean {
  return cycle.end > now || renews(cycle);
}

/**
 * How many periods have begun by `now` since this one. Closed form: a reader after ten years of downtime pays no more
 * than one after a second.
 */
export function periodsMissed(cycle: Cycle, now: Instant): number {
  if (!renews(cycle) || !hasEnded(cycle, now)) return 0;
  // No period begins at the last instant: it would end where it starts.
  return Math.floor((Math.min(now, LAST_INSTANT) - cycle.end) / (cycle.validityDays * DAY_MS)) + 1;
}

/** The cycle in the period that comes `count` periods after this one, unspent. Leftover credits are not carried over. */
export function periodAfter(cycle: Cycle, count: number): Cycle {
  const start = cycle.end + (count - 1) * cycle.validityDays * DAY_MS;
  const end = endOf(start, cycle.validityDays);
  return { ...cycle, period: cycle.period + count, remaining: cycle.amount, start, end };
}

/**
 * The order in which credits are spent: those that were added first come first. Ids sort by creation, and a renewing
 * cycle is older than whatever starts together with its new period. A total order, so that every store drains alike.
 */
export function burnOrder(a: Cycle, b: Cycle): number {
  return a.start - b.start || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Sorts into burn order, in place. Rows nearly always come sorted, and checking that costs a fraction of a sort. */
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
    4,
    'a cycle is valid for whole days',
    ({ validityDays: days }) => Number.isSafeInteger(days) && days >= 1 && days <= VALIDITY_DAYS_MAX,
  ],
  [4, 'a cycle starts at an instant', ({ start }) => isInstant(start)],
  [4, 'a cycle ends its validity after its start', (c) => c.start < c.end && c.end === endOf(c.start, c.validityDays)],
  [
    3,
    'periods are counted from 0 and abut, from the creation on',
    (c) => c.period >= 0 && c.start === createdAt(c) + c.period * c.validityDays * DAY_MS,
  ],
  [
    3,
    'a one-time cycle has one period and no stop',
    (c) => c.type === 'recurring' || (c.period === 0 && c.status === 'active'),
  ],
];

/** The rules of a single cycle that this one breaks; none for a cycle that Scrip wrote. */
export function brokenRules(cycle: Cycle): (readonly [invariant: Invariant, sentence: string])[] {
  return CYCLE_RULES.filter(([, , holds]) => !holds(cycle)).map(([invariant, sentence]) => [invariant, sentence]);
}

/** Checked where a cycle or a period is opened. */
export function assertCycle(cycle: Cycle): void {
  for (const [invariant, sentence, holds] of CYCLE_RULES) assertInvariant(invariant, holds(cycle), sentence);
}

/** Checked wherever a cycle is read: the rules without which a decision goes wrong. The audit checks all of them. */
export function assertReadable({ amount, remaining, start, end, validityDays }: Cycle): void {
  assertInvariant(1, remaining >= 0 && remaining <= amount, 'what remains is between 0 and the amount');
  assertInvariant(4, start < end && end === endOf(start, validityDays), 'a cycle ends its validity after its start');
}
