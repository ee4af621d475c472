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
  /** Whether nothing more is due. If not, settle again from `state`. */
  readonly isComplete: boolean;
}

/** Applies the events that are due at `now`, the oldest first and at most `eventsMax`. */
export function settle(state: EndUserState, now: Instant, eventsMax: number): Settled {
  let current = state;
  const postings: Posting[] = [];
  for (let events = 0; events <= eventsMax; events++) {
    const event = nextEvent(current, now);
    if (event === null) return { state: current, postings, isComplete: true };
    if (events === eventsMax) break;
    current = applyAll(current, event);
    postings.push(...event);
  }
  return { state: current, postings, isComplete: false };
}

/** How many renewals are due at `now` and not stored yet. */
export function dueCount({ cycles }: EndUserState, now: Instant): number {
  const renewing = cycles.find(renews);
  return renewing === undefined ? 0 : periodsMissed(renewing, now);
}

/** The due renewals as they will be stored, latest first. */
export function* dueTransactions({ cycles }: EndUserState, now: Instant): Generator<Transaction> {
  const renewing = cycles.find(renews);
  if (renewing === undefined) return;
  for (let count = periodsMissed(renewing, now); count >= 1; count--)
    yield transactionOf([renewalOf(periodAfter(renewing, count))]);
}
