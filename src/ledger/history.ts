// The balance of an end user over time: a fold of its postings and, after the latest posting, of the renewals and
// expiries to come. One function computes the past and the projection.

import type { Amount } from './amount.ts';
import { applyAll } from './apply.ts';
import { activeBalance } from './balance.ts';
import { INSTANT_MAX, type Instant } from './instant.ts';
import { nextEvent } from './next-event.ts';
import type { Posting } from './posting.ts';
import { type EndUserState, liveState } from './state.ts';

/** The balance from `at` until the next step. */
export interface Step {
  readonly at: Instant;
  readonly balance: Amount;
}

export interface Recorded {
  /** The state before the first posting. */
  readonly state: EndUserState;
  /** Oldest first. */
  readonly postings: readonly Posting[];
}

export interface Range {
  readonly from: Instant;
  readonly to: Instant;
}

/** The changes of the balance within a range, ends included. The first step is at `from`. */
export function balanceSteps({ state, postings }: Recorded, { from, to }: Range): Step[] {
  let current = state;
  let next = 0;
  const steps: Step[] = [];
  for (let at = 0; at <= to; ) {
    const entered = next;
    while (postings[next] !== undefined && (postings[next] as Posting).createdAt <= at) next++;
    current = settledAt(applyAll(current, postings.slice(entered, next)), at);
    note(steps, { at: Math.max(at, from), balance: activeBalance(current.cycles, at) });
    at = Math.min(postings[next]?.createdAt ?? INSTANT_MAX + 1, nextChange(current, at));
  }
  return steps;
}

/** Applies the renewals that are due and not among the postings, and drops ended cycles. */
function settledAt(state: EndUserState, at: Instant): EndUserState {
  let current = state;
  for (let event = nextEvent(current, at); event !== null; event = nextEvent(current, at))
    current = applyAll(current, event);
  return liveState(current, at);
}

/** The next instant at which a cycle ends. */
function nextChange({ cycles }: EndUserState, after: Instant): Instant {
  let next = INSTANT_MAX + 1;
  for (const { end } of cycles) if (end > after && end < next) next = end;
  return next;
}

/** Adds a step if it changes the balance. Of several steps at one instant, only the last one counts. */
function note(steps: Step[], step: Step): void {
  const last = steps.at(-1);
  if (last?.at === step.at) steps.pop();
  if (steps.at(-1)?.balance !== step.balance) steps.push(step);
}
