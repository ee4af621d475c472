// Computes the balance of an end user at an instant from its cycles. Readers count a renewal as soon as it is due, even
// if it is not stored yet.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import { type Cycle, hasEnded, inBurnOrder, periodAfter, periodsMissed } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

/** The cycles that have not ended at `now`, in burn order, after all renewals that are due. */
export function cyclesAt({ cycles }: EndUserState, now: Instant): readonly Cycle[] {
  const current: Cycle[] = [];
  for (const cycle of cycles) {
    const missed = periodsMissed(cycle, now);
    const latest = missed > 0 ? periodAfter(cycle, missed) : cycle;
    if (!hasEnded(latest, now)) current.push(latest);
  }
  return inBurnOrder(current);
}

/** The credits in cycles that have not ended at `now`: at most 2^53−1. Does not apply renewals. */
export function activeBalance(cycles: readonly Cycle[], now: Instant): Amount {
  let total = 0;
  for (const cycle of cycles) {
    if (hasEnded(cycle, now)) continue;
    assert(cycle.remaining <= AMOUNT_MAX - total, 'the credits of one end user stay within 2^53−1');
    total += cycle.remaining;
  }
  return total;
}
