// Computes the balance at an instant from cycles and holds. Includes due events (renewals, changes of plan and lapses)
// that are not stored yet.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import { type Cycle, hasEnded, inSpendingOrder, periodAt, renews, spendable } from './cycle.ts';
import type { Hold } from './hold.ts';
import type { Instant } from './instant.ts';
import { currentPeriodName, periodName } from './posting.ts';
import type { EndUserState } from './state.ts';

/**
 * The cycles that are running at `now`, in spending order, with all due events applied. If `now` is in the future,
 * assumes that no request arrives before then.
 */
export function cyclesAt(state: EndUserState, now: Instant): readonly Cycle[] {
  const returned = lapsedBy(state, now);
  const current: Cycle[] = [];
  for (const cycle of state.cycles) {
    if (renews(cycle) && hasEnded(cycle, now)) {
      const latest = periodAt(atItsEnd(cycle, state.holds), now);
      // At `INSTANT_MAX`, even the last period has ended.
      if (!hasEnded(latest, now)) current.push(latest);
    } else if (!hasEnded(cycle, now)) {
      const back = returned?.get(currentPeriodName(cycle)) ?? 0;
      current.push(back > 0 ? { ...cycle, held: cycle.held - back } : cycle);
    }
  }
  return inSpendingOrder(current);
}

/** The state of `cycle` at its end, after the holds that lapse before the end have returned their credits. */
export function atItsEnd(cycle: Cycle, holds: readonly Hold[]): Cycle {
  if (cycle.held === 0) return cycle;
  let { held } = cycle;
  for (const { expiresAt, parts } of holds) {
    if (expiresAt >= cycle.end) break;
    for (const { cycleId, period, amount } of parts)
      if (cycleId === cycle.id && period === cycle.period) held -= amount;
  }
  return { ...cycle, held };
}

/** The credits of the holds whose lapse is due at `now`, summed by period; null if no lapse is due. */
function lapsedBy({ holds }: EndUserState, now: Instant): Map<string, Amount> | null {
  let returned: Map<string, Amount> | null = null;
  for (const { expiresAt, parts } of holds) {
    if (expiresAt > now) break;
    returned ??= new Map();
    for (const part of parts) {
      const name = periodName(part);
      returned.set(name, (returned.get(name) ?? 0) + part.amount);
    }
  }
  return returned;
}

/** The credits that an end user can spend at `now`, at most 2^53−1. All events due at `now` must have been applied. */
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
