// A cycle: a stretch of time [start, end) with an amount of credits in it. A one-time cycle has one period; a
// recurring one has a period after another, each a `Cycle` of its own with the same id and the next number.
//
//   one-time:   active ──end──▶ over
//   recurring:  active ──end──▶ renewed, and the next period is active
//               active ──stop──▶ canceled ──end──▶ over

import assert from 'node:assert/strict';
import { type Amount, isAmount } from './amount.ts';
import { DAY_MS, endOf, INSTANT_MAX, type Instant, isInstant, VALIDITY_DAYS_MAX } from './instant.ts';
import { instantOf, type TransactionId } from './transaction-id.ts';

export type CycleType = 'one-time' | 'recurring';

/** `renewed` marks the periods that another has followed; no answer ever shows one, since it has ended. */
export type CycleStatus = 'active' | 'canceled' | 'renewed';

export interface Cycle {
  /** The transaction that started its first period. */
  readonly id: TransactionId;
  /** 0 for the first. */
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

export function hasEnded(cycle: Cycle, now: Instant): boolean {
  return cycle.end <= now;
}

/** Whether it will be renewed at its end. One whose end lies past the last instant never comes to it. */
export function renews(cycle: Cycle): boolean {
  return cycle.type === 'recurring' && cycle.status === 'active' && cycle.end < INSTANT_MAX;
}

/**
 * How many periods have begun since this one was the latest. Closed form, so that a reader after ten years of
 * downtime pays no more than one after a second.
 */
export function periodsMissed(cycle: Cycle, now: Instant): number {
  if (!renews(cycle) || !hasEnded(cycle, now)) return 0;
  return Math.floor((now - cycle.end) / (cycle.validityDays * DAY_MS)) + 1;
}

/** The period that comes `turns` after this one, untouched. Leftover credits are not carried over. */
export function periodAfter(cycle: Cycle, turns: number): Cycle {
  assert(turns >= 1 && renews(cycle), 'only what renews has periods to come');
  const start = cycle.end + (turns - 1) * cycle.validityDays * DAY_MS;
  const end = endOf(start, cycle.validityDays);
  return { ...cycle, period: cycle.period + turns, remaining: cycle.amount, start, end };
}

/**
 * The order in which credits are spent: those that were added first come first. Ids sort by creation, and a renewing
 * cycle is older than whatever starts together with its new period. A total order, so that every store drains alike.
 */
export function burnOrder(a: Cycle, b: Cycle): number {
  return a.start - b.start || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Puts them into burn order, in place. They nearly always come so, and to see that takes a fraction of sorting them. */
export function inBurnOrder(cycles: Cycle[]): Cycle[] {
  for (let index = 1; index < cycles.length; index++) {
    if (burnOrder(cycles[index - 1] as Cycle, cycles[index] as Cycle) > 0) return cycles.sort(burnOrder);
  }
  return cycles;
}

const CYCLE_RULES: readonly (readonly [sentence: string, holds: (cycle: Cycle) => boolean])[] = [
  ['a cycle starts with 1 to 2^53−1 credits', ({ amount }) => isAmount(amount)],
  [
    'what remains is between 0 and the amount',
    (c) => Number.isSafeInteger(c.remaining) && c.remaining >= 0 && c.remaining <= c.amount,
  ],
  [
    'a cycle is valid for whole days',
    ({ validityDays: days }) => Number.isSafeInteger(days) && days >= 1 && days <= VALIDITY_DAYS_MAX,
  ],
  ['a cycle starts at an instant', ({ start }) => isInstant(start)],
  ['a cycle ends its validity after its start', (c) => c.start < c.end && c.end === endOf(c.start, c.validityDays)],
  [
    'periods are counted from 0 and abut, from the creation on',
    (c) => c.period >= 0 && c.start === createdAt(c) + c.period * c.validityDays * DAY_MS,
  ],
  [
    'a one-time cycle has one period and no stop',
    (c) => c.type === 'recurring' || (c.period === 0 && c.status === 'active'),
  ],
];

/** The rules of a single cycle that this one breaks, as sentences; none for a cycle that Scrip wrote. */
export function brokenRules(cycle: Cycle): string[] {
  return CYCLE_RULES.filter(([, holds]) => !holds(cycle)).map(([sentence]) => sentence);
}

/** Checked before a row is written and after one is read. */
export function assertCycle(cycle: Cycle): void {
  for (const [sentence, holds] of CYCLE_RULES) assert(holds(cycle), sentence);
}
