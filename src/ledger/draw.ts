// Draws credits from cycles, oldest first.

import assert from 'node:assert/strict';
import type { Amount } from './amount.ts';
import { type Cycle, hasEnded, spendable } from './cycle.ts';
import type { Instant } from './instant.ts';

export interface Draw {
  readonly cycle: Cycle;
  readonly amount: Amount;
}

/**
 * @param cycles in spending order; cycles that have ended by `now` are ignored
 * @returns one draw for each cycle that credits are drawn from; null if the cycles do not cover `wanted`
 */
export function draw(cycles: readonly Cycle[], wanted: Amount, now: Instant): readonly Draw[] | null {
  assert(wanted >= 1, 'amounts are validated at the API');
  const draws: Draw[] = [];
  let missing = wanted;
  for (const cycle of cycles) {
    // Cycles are half-open, [start, end): a cycle that ends exactly now no longer counts.
    if (hasEnded(cycle, now)) continue;
    const amount = Math.min(missing, spendable(cycle));
    if (amount === 0) continue;
    draws.push({ cycle, amount });
    missing -= amount;
    if (missing === 0) return draws;
  }
  return null;
}
