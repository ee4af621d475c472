// Settles an end user: applies the events that are due. The writer settles before it decides. Readers compute the same
// result without storing it, so that they never show a wrong balance before a renewal is stored.

import { applyAll } from './apply.ts';
import { periodAfter, periodsMissed, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import { nextEvent, renewalOf } from './next-event.ts';
import { type Posting, type Transaction, transactionOf } from './posting.ts';
import type { EndUserState } from './state.ts';

export interface Settled {
  readonly state: EndUserState;
  readonly postings: readonly Posting[];
  /** False if events are still due: settle again from `state`. */
  readonly isComplete: boolean;
}

/**
 * Applies the events that are due at `now`, the oldest first, until `eventsMax` postings are reached. A lapse has one
 * posting for each cycle of its hold and is never applied in part, so it can exceed `eventsMax`.
 */
export function settle(state: EndUserState, now: Instant, eventsMax: number): Settled {
  let current = state;
  const postings: Posting[] = [];
  let event = nextEvent(current, now);
  while (event !== null && postings.length < eventsMax) {
    current = applyAll(current, event);
    postings.push(...event);
    event = nextEvent(current, now);
  }
  return { state: current, postings, isComplete: event === null };
}

/** How many renewals are due at `now` and not stored yet. */
export function dueCount({ cycles }: EndUserState, now: Instant): number {
  const renewing = cycles.find(renews);
  return renewing === undefined ? 0 : periodsMissed(renewing, now);
}

/** The due renewals as they will be stored, latest first. */
export function* dueTransactions(state: EndUserState, now: Instant): Generator<Transaction> {
  for (const renewal of dueRenewals(state, now)) yield transactionOf([renewal]);
}

/** The postings of the due renewals, one for each, latest first. */
export function* dueRenewals({ cycles }: EndUserState, now: Instant): Generator<Posting> {
  const renewing = cycles.find(renews);
  if (renewing === undefined) return;
  for (let count = periodsMissed(renewing, now); count >= 1; count--) yield renewalOf(periodAfter(renewing, count));
}
