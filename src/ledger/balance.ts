// The balance at an instant: computed from cycles and holds, never stored. Due renewals and lapses count before they
// are stored, so that a read never shows a wrong balance.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import { type Cycle, hasEnded, inBurnOrder, periodAfter, periodsMissed, spendable } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

/**
 * The cycles that count at `now`, in burn order, as if every due renewal and lapse were already stored. If `now` is in
 * the future, the result assumes that no request follows until then.
 */
export function cyclesAt(state: EndUserState, now: Instant): readonly Cycle[] {
  const returned = lapsedBy(state, now);
  const current: Cycle[] = [];
  for (const cycle of state.cycles) {
    const missed = periodsMissed(cycle, now);
    const latest = missed > 0 ? periodAfter(cycle, missed) : cycle;
    if (hasEnded(latest, now)) continue;
    const back = returned?.get(periodText(latest)) ?? 0;
    current.push(back > 0 ? { ...latest, held: latest.held - back } : latest);
  }
  return inBurnOrder(current);
}

/**
 * The credits that holds return when they lapse, by period, for all holds that are due at `now`; null if there are
 * none.
 */
function lapsedBy({ holds }: EndUserState, now: Instant): Map<string, Amount> | null {
  let returned: Map<string, Amount> | null = null;
  for (const { expiresAt, parts } of holds) {
    if (expiresAt > now) break;
    returned ??= new Map();
    for (const { cycleId: id, period, amount } of parts) {
      const text = periodText({ id, period });
      returned.set(text, (returned.get(text) ?? 0) + amount);
    }
  }
  return returned;
}

function periodText({ id, period }: Pick<Cycle, 'id' | 'period'>): string {
  return `${id}/${period}`;
}

/** The credits that an end user can spend at `now`, at most 2^53−1. The cycles must be settled at `now`. */
export function activeBalance(cycles: readonly Cycle[], now: Instant): Amount {
  let total = 0;
  for (const cycle of cycles) {
    if (hasEnded(cycle, now)) continue;
    const amount = spendable(cycle);
    assert(amount <= AMOUNT_MAX - total, 'the credits of one end user stay within 2^53−1');
    total += amount;
  }
  return total;
}
