// What time alone has done to an end user: a fold over its events. The writer settles before it decides. Readers look at
// the same result without storing it, so a renewal that is not stored yet never shows or spends a wrong balance.

import { applyAll } from './apply.ts';
import { periodAfter, periodsMissed, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import { nextEvent, renewalOf } from './next-event.ts';
import { type Posting, type Transaction, transactionOf } from './posting.ts';
import type { EndUserState } from './state.ts';

export interface Settled {
  readonly state: EndUserState;
  readonly postings: readonly Posting[];
  /** Whether nothing more is due; if not, settling has to go on from `state`. */
  readonly isComplete: boolean;
}

/** Enters what is due at `now`, the oldest `eventsMax` events of it. */
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

/** How many transactions are due at `now` and not stored yet. */
export function dueCount({ cycles }: EndUserState, now: Instant): number {
  const renewing = cycles.find(renews);
  return renewing === undefined ? 0 : periodsMissed(renewing, now);
}

/** Those transactions as they will be stored, latest first. */
export function* dueTransactions({ cycles }: EndUserState, now: Instant): Generator<Transaction> {
  const renewing = cycles.find(renews);
  if (renewing === undefined) return;
  for (let count = periodsMissed(renewing, now); count >= 1; count--)
    yield transactionOf([renewalOf(periodAfter(renewing, count))]);
}
