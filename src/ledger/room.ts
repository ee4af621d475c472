// Keeps the credits of an end user, including held credits, within 2^53−1: now and at the next renewal of the active
// cycle. A renewal cannot be refused, so grants must leave room for it. Later renewals need no check: until then, the
// other credits can only expire.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import type { Refusal } from './command.ts';
import { type Cycle, hasEnded, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { EndUserState } from './state.ts';

/** Credits that an end user would get, and the instant at which they would expire. */
interface Wanted {
  readonly amount: Amount;
  readonly end: Instant;
}

/** @param state settled at `now` */
export function refuseTooLarge(state: EndUserState, { amount, end }: Wanted, now: Instant): Refusal | null {
  let available = AMOUNT_MAX - creditsAt(state, now);
  const renewing = state.cycles.find(renews);
  if (renewing && end > renewing.end) available = Math.min(available, roomAtRenewal(state, renewing));
  return amount <= available ? null : { refused: 'BalanceTooLarge', requested: amount, available };
}

/**
 * How many credits can be added without exceeding 2^53−1 at the next renewal. The remaining credits of the current
 * period expire at the renewal.
 */
export function roomAtRenewal(state: EndUserState, renewing: Cycle): Amount {
  const room = AMOUNT_MAX - renewing.amount - creditsAt(state, renewing.end);
  assert(room >= 0, 'earlier decisions kept room for the renewal');
  return room;
}

/**
 * The credits of all cycles that are running at `at`, plus the credits of ended cycles in holds that are open at `at`.
 */
function creditsAt({ cycles, holds }: EndUserState, at: Instant): number {
  let total = 0;
  for (const cycle of cycles) if (!hasEnded(cycle, at)) total += cycle.remaining;
  for (const { expiresAt, parts } of holds) {
    if (expiresAt <= at) continue;
    for (const { end, amount } of parts) if (end <= at) total += amount;
  }
  return total;
}
