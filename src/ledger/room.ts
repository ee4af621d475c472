// Keeps an end user's credits, including held credits, within 2^53−1: now and at the next renewal of the active
// cycle. Grants must leave room for the renewal, because Scrip cannot refuse a renewal. Later renewals need no check:
// without further grants, the credits of the other cycles cannot increase.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount } from './amount.ts';
import type { Refusal } from './command.ts';
import { type Cycle, hasEnded, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { Plan } from './plan.ts';
import type { EndUserState } from './state.ts';

interface Wanted {
  readonly amount: Amount;
  readonly end: Instant;
  /** The maximum number of credits that roll over to the next period; 0 if absent. */
  readonly rolloverMax?: Amount;
}

/** @param state settled at `now` */
export function refuseTooLarge(
  state: EndUserState,
  { amount, end, rolloverMax = 0 }: Wanted,
  now: Instant,
): Refusal | null {
  let available = AMOUNT_MAX - creditsAt(state, now);
  if (rolloverMax > 0) available = Math.max(0, Math.min(available, AMOUNT_MAX - rolloverMax - creditsAt(state, end)));
  const renewing = state.cycles.find(renews);
  if (renewing && end > renewing.end) available = Math.min(available, roomAtRenewal(state, renewing));
  return amount <= available ? null : { refused: 'BalanceTooLarge', requested: amount, available };
}

/** Like `refuseTooLarge`, but for a plan that begins when the current period of `renewing` ends. */
export function refuseTooLargePlan(state: EndUserState, renewing: Cycle, plan: Plan): Refusal | null {
  const { amount: requested, rolloverMax } = plan;
  const available = Math.max(0, AMOUNT_MAX - rolloverMax - creditsAt(state, renewing.end));
  return requested <= available ? null : { refused: 'BalanceTooLarge', requested, available };
}

/**
 * The maximum number of credits that can be added without the total exceeding 2^53−1 at the next renewal or change of
 * plan. Reserves the full `rolloverMax`, so that later renewals also have room.
 */
export function roomAtRenewal(state: EndUserState, renewing: Cycle): Amount {
  const { plan } = renewing.next ?? renewing;
  const room = AMOUNT_MAX - plan.amount - plan.rolloverMax - creditsAt(state, renewing.end);
  assert(room >= 0, 'earlier decisions left enough room for the renewal');
  return room;
}

/** The credits of all cycles that are running at `at`, plus the credits of ended cycles that are still held at `at`. */
function creditsAt({ cycles, holds }: EndUserState, at: Instant): number {
  let total = 0;
  for (const cycle of cycles) if (!hasEnded(cycle, at)) total += cycle.remaining;
  for (const { expiresAt, parts } of holds) {
    if (expiresAt <= at) continue;
    for (const { end, amount } of parts) if (end <= at) total += amount;
  }
  return total;
}
