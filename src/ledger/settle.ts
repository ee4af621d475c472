// Settles an end user: applies the events that are due. Writers settle an end user before each command; readers compute
// the same result without storing it, so that they never show a wrong balance.

import { applyAll } from './apply.ts';
import { atItsEnd } from './balance.ts';
import { type Cycle, hasEnded, periodAfter, periodsMissed, renews, scheduledCycle } from './cycle.ts';
import type { Instant } from './instant.ts';
import { changeOf, lapseOf, nextEvent, renewalOf } from './next-event.ts';
import { type Posting, type Transaction, transactionOf } from './posting.ts';
import type { EndUserState } from './state.ts';

interface Settled {
  readonly state: EndUserState;
  readonly postings: readonly Posting[];
  /** False if more events are due. In that case, call `settle` again with `state`. */
  readonly isComplete: boolean;
}

/**
 * Applies due events, oldest first, until none is left or there are at least `eventsMax` postings. The postings of a
 * lapse are applied together, so the result can have more than `eventsMax` postings.
 */
export function settle(state: EndUserState, now: Instant, eventsMax: number): Settled {
  let current = state;
  const postings: Posting[] = [];
  let event = nextEvent(current, now);
  while (event !== null && postings.length < eventsMax) {
    current = applyAll(current, event);
    for (const posting of event) postings.push(posting);
    event = nextEvent(current, now);
  }
  return { state: current, postings, isComplete: event === null };
}

/** How many renewals and changes of plan are due at `now` and not stored yet. */
export function dueCount({ cycles }: EndUserState, now: Instant): number {
  let renewing = cycles.find(renews);
  let changes = 0;
  for (; renewing?.next && hasEnded(renewing, now); changes++) renewing = scheduledCycle(renewing, renewing.next);
  return renewing === undefined ? 0 : changes + periodsMissed(renewing, now);
}

/** The due renewals and changes of plan as they will be stored, latest first. */
export function* dueTransactions(state: EndUserState, now: Instant): Generator<Transaction> {
  for (const posting of dueRenewals(state, now)) yield transactionOf([posting]);
}

/** The postings of the due renewals and changes of plan, one posting for each, latest first. */
export function* dueRenewals({ cycles, holds }: EndUserState, now: Instant): Generator<Posting> {
  const renewing = cycles.find(renews);
  if (renewing !== undefined) yield* renewalsOf(atItsEnd(renewing, holds), now);
}

function* renewalsOf(cycle: Cycle, now: Instant): Generator<Posting> {
  if (cycle.next !== null && hasEnded(cycle, now)) {
    yield* renewalsOf(scheduledCycle(cycle, cycle.next), now);
    yield changeOf(cycle, cycle.next);
  } else for (let count = periodsMissed(cycle, now); count >= 1; count--) yield renewalOf(periodAfter(cycle, count));
}

/** The postings of the due lapses as they will be stored, one transaction for each hold, latest first. */
export function* dueLapses({ holds }: EndUserState, now: Instant): Generator<readonly [Posting, ...Posting[]]> {
  const due = holds.filter(({ expiresAt }) => expiresAt <= now);
  for (const hold of due.reverse()) yield lapseOf(hold);
}
