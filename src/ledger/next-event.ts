// The next automatic event of an end user: a renewal, a change of plan, or the lapse of a hold. Automatic events are
// caused only by the passage of time.

import { type Cycle, periodAfter, renews, scheduledCycle } from './cycle.ts';
import { type Hold, lapseId } from './hold.ts';
import { INSTANT_MAX, type Instant } from './instant.ts';
import { assertInvariant } from './invariant.ts';
import type { ScheduledPlan } from './plan.ts';
import { CHANGE_ACTOR, LAPSE_ACTOR, openingOf, type Posting, postingOn, RENEWAL_ACTOR } from './posting.ts';
import type { EndUserState } from './state.ts';
import { renewalId } from './transaction-id.ts';

/** The instant of an event that never happens: later than every valid instant. */
export const NEVER: Instant = INSTANT_MAX + 1;

/** The instant of the next event; `NEVER` if there is none. */
export function nextEventAt(state: EndUserState): Instant {
  return Math.min(renewingOf(state)?.end ?? NEVER, state.holds[0]?.expiresAt ?? NEVER);
}

/**
 * The postings of the earliest event that is due at `now`; null if none is due. A renewal or a change of plan precedes
 * a lapse at the same instant.
 */
export function nextEvent(state: EndUserState, now: Instant): readonly Posting[] | null {
  const at = nextEventAt(state);
  if (at > now) return null;
  const renewing = renewingOf(state);
  if (renewing?.end === at)
    return [renewing.next === null ? renewalOf(periodAfter(renewing, 1)) : changeOf(renewing, renewing.next)];
  const [hold] = state.holds;
  return hold === undefined ? null : lapseOf(hold);
}

export function isSettled(state: EndUserState, now: Instant): boolean {
  return nextEventAt(state) > now;
}

/**
 * The posting that renews a cycle and opens `period`. Its transaction ID is derived from the cycle and the start of the
 * period, so every process computes the same ID.
 */
export function renewalOf(period: Cycle): Posting {
  const transactionId = renewalId(period.id, period.start);
  return openingOf(period, { transactionId, kind: 'renew', actor: RENEWAL_ACTOR, note: null });
}

/** The posting that starts the scheduled plan at the end of `ended`. */
export function changeOf(ended: Cycle, scheduled: ScheduledPlan): Posting {
  const cycle = scheduledCycle(ended, scheduled);
  const entry = { transactionId: cycle.id, kind: 'change-plan', actor: CHANGE_ACTOR, note: null } as const;
  return openingOf(cycle, { ...entry, reference: scheduled.id });
}

/** The postings that return the credits of an expired hold. Their transaction ID is derived from the hold. */
export function lapseOf(hold: Hold): readonly [Posting, ...Posting[]] {
  const entry = { transactionId: lapseId(hold), kind: 'lapse', createdAt: hold.expiresAt, actor: LAPSE_ACTOR } as const;
  const postings = hold.parts.map(({ cycleId, period, end, amount }) =>
    postingOn(
      { cycleId, period, expiresAt: end },
      { amount: 0, held: -amount },
      { ...entry, note: null, reference: hold.id },
    ),
  );
  return postings as [Posting, ...Posting[]];
}

function renewingOf({ cycles }: EndUserState): Cycle | null {
  let renewing: Cycle | null = null;
  for (const cycle of cycles) {
    if (!renews(cycle)) continue;
    assertInvariant(3, renewing === null, 'an end user has at most one active recurring cycle');
    renewing = cycle;
  }
  return renewing;
}
