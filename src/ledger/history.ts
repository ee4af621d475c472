// An end user's balance at a past or future instant. A store provides the state after the last posting up to that
// instant; this file adds the renewals, changes of plan, expiries and lapses between that posting and the instant.

import assert from 'node:assert/strict';
import type { Amount } from './amount.ts';
import { activeBalance, cyclesAt } from './balance.ts';
import { heldAt } from './hold.ts';
import { addMonths, DAY_MS, HOUR_MS, INSTANT_MAX, type Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

export const POINTS_MAX = 1_000;

export const INTERVALS = ['hour', 'day', 'month'] as const;
export type Interval = (typeof INTERVALS)[number];

export interface BalancePoint {
  readonly at: Instant;
  readonly balance: Amount;
  readonly held: Amount;
}

/** @param state the state after the last transaction at or before `at` */
export function balanceAt(state: EndUserState, at: Instant): BalancePoint {
  return { at, balance: activeBalance(cyclesAt(state, at), at), held: heldAt(state.holds, at) };
}

/**
 * The instants of a history: `from`, then one instant per interval, none later than `to`. Months are calendar months in
 * UTC.
 *
 * @returns null if there would be more than `POINTS_MAX` instants
 */
export function pointsBetween(from: Instant, to: Instant, interval: Interval): readonly Instant[] | null {
  assert(from <= to, 'a history does not end before it begins');
  assert(to <= INSTANT_MAX, 'a history ends at a valid instant');
  const points: Instant[] = [];
  for (let count = 0; ; count++) {
    const at = pointAt(from, count, interval);
    if (at > to) return points;
    if (count === POINTS_MAX) return null;
    points.push(at);
  }
}

function pointAt(from: Instant, count: number, interval: Interval): Instant {
  if (interval === 'month') return addMonths(from, count);
  return from + count * (interval === 'day' ? DAY_MS : HOUR_MS);
}
