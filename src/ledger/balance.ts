// The balance: computed from cycles, always at an instant, never stored. A renewal that is due counts for readers before it
// is stored, so that none of them shows a wrong balance.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import { type Cycle, hasEnded, inBurnOrder, periodAfter, periodsMissed } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

/** The cycles that count at `now`, in burn order, as if all that is due had been stored the moment it was due. */
export function cyclesAt({ cycles }: EndUserState, now: Instant): readonly Cycle[] {
  const current: Cycle[] = [];
  for (const cycle of cycles) {
    const missed = periodsMissed(cycle, now);
    const latest = missed > 0 ? periodAfter(cycle, missed) : cycle;
    if (!hasEnded(latest, now)) current.push(latest);
  }
  return inBurnOrder(current);
}

/** What an end user can spend at `now`, given cycles that are settled at `now`. At most 2^53−1. */
export function activeBalance(cycles: readonly Cycle[], now: Instant): Amount {
  let total = 0;
  for (const cycle of cycles) {
    if (hasEnded(cycle, now)) continue;
    assert(cycle.remaining <= AMOUNT_MAX - total, 'the credits of one end user stay within 2^53−1');
    total += cycle.remaining;
  }
  return total;
}
