// The balance: computed from cycles, always at an instant, never stored.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import { type Cycle, hasEnded } from './cycle.ts';
import type { Instant } from './instant.ts';

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
