// What time alone has done to the cycles of one end user: each period that ended is followed by the next. The writers
// settle before they decide; the readers look at the same result without storing it, so a renewal that is not yet
// stored can never show or spend a wrong balance.

import assert from 'node:assert/strict';
import { type Cycle, hasEnded, inBurnOrder, periodAfter, periodsMissed, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import { openingOf, type Posting, RENEWAL_ACTOR, type Transaction } from './posting.ts';
import { renewalId } from './transaction-id.ts';

export interface Settled {
  /** Those that came in, changed in place where they renewed, then the new periods, oldest first. */
  readonly cycles: readonly Cycle[];
  readonly postings: readonly Posting[];
  /** How many periods were missed in all; when it is more than there are postings, another round is due. */
  readonly missed: number;
}

const NOTHING: readonly Posting[] = [];

/**
 * Enters the periods that have begun up to `now`, the oldest `periodsMax` of them.
 *
 * @param cycles of one end user, in burn order: at least those that have not ended and the one that renews
 */
export function settle(cycles: readonly Cycle[], now: Instant, periodsMax: number): Settled {
  const index = cycles.findIndex(renews);
  const renewing = cycles[index];
  const missed = renewing === undefined ? 0 : periodsMissed(renewing, now);
  if (renewing === undefined || missed === 0 || periodsMax === 0) return { cycles, postings: NOTHING, missed };
  const turns = Math.min(missed, periodsMax);
  const periods: Cycle[] = [];
  const postings: Posting[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const period = periodAfter(renewing, turn);
    periods.push(turn === turns ? period : { ...period, status: 'renewed' });
    postings.push(
      openingOf(period, {
        transactionId: renewalId(period.id, period.start),
        kind: 'renew',
        actor: RENEWAL_ACTOR,
        note: null,
      }),
    );
  }
  assert(turns < missed || !hasEnded(periods[turns - 1] as Cycle, now), 'a settled cycle covers now');
  const settled = cycles.slice();
  settled[index] = { ...renewing, status: 'renewed' };
  return { cycles: settled.concat(periods), postings, missed };
}

/** The cycles that count at `now`, in burn order, as if every renewal had been stored the moment it was due. */
export function cyclesAt(cycles: readonly Cycle[], now: Instant): readonly Cycle[] {
  const current: Cycle[] = [];
  for (const cycle of cycles) {
    const missed = periodsMissed(cycle, now);
    const latest = missed > 0 ? periodAfter(cycle, missed) : cycle;
    if (!hasEnded(latest, now)) current.push(latest);
  }
  return inBurnOrder(current);
}

/** How many renewals are due at `now` and not yet stored. */
export function renewalsDueCount(cycles: readonly Cycle[], now: Instant): number {
  const renewing = cycles.find(renews);
  return renewing ? periodsMissed(renewing, now) : 0;
}

/** Those renewals, as they will be stored; latest first. */
export function* renewalsDue(cycles: readonly Cycle[], now: Instant): Generator<Transaction> {
  const renewing = cycles.find(renews);
  if (renewing === undefined) return;
  for (let turn = periodsMissed(renewing, now); turn >= 1; turn--) {
    const { id, start, end, amount } = periodAfter(renewing, turn);
    yield { id: renewalId(id, start), kind: 'renew', amount, createdAt: start, expiresAt: end, actor: RENEWAL_ACTOR };
  }
}
