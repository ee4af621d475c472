// The next event that happens to an end user without a command: the renewal of a recurring cycle at the end of a
// period.

import { type Cycle, hasEnded, periodAfter, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import { assertInvariant } from './invariant.ts';
import { openingOf, type Posting, RENEWAL_ACTOR } from './posting.ts';
import type { EndUserState } from './state.ts';
import { renewalId } from './transaction-id.ts';

/** The postings of the earliest event that is due at `now`; null if none is due. */
export function nextEvent({ cycles }: EndUserState, now: Instant): readonly Posting[] | null {
  let renewing: Cycle | null = null;
  for (const cycle of cycles) {
    if (!renews(cycle)) continue;
    assertInvariant(3, renewing === null, 'an end user has at most one active recurring cycle');
    renewing = cycle;
  }
  if (renewing === null || !hasEnded(renewing, now)) return null;
  return [renewalOf(periodAfter(renewing, 1))];
}

export function isSettled(state: EndUserState, now: Instant): boolean {
  return nextEvent(state, now) === null;
}

/**
 * The posting that opens a period. Its id is derived from the cycle and the instant, so every process computes the same
 * id.
 */
export function renewalOf(period: Cycle): Posting {
  const transactionId = renewalId(period.id, period.start);
  return openingOf(period, { transactionId, kind: 'renew', actor: RENEWAL_ACTOR, note: null });
}
