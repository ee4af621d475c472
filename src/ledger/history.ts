// The balance of an end user over time, as a fold: of postings as far as there are any, and from there on of what time
// alone does. The past and what is projected from it come from the same function.

import type { Amount } from './amount.ts';
import { applyAll } from './apply.ts';
import { activeBalance } from './balance.ts';
import { INSTANT_MAX, type Instant } from './instant.ts';
import { nextEvent } from './next-event.ts';
import type { Posting } from './posting.ts';
import { type EndUserState, liveState } from './state.ts';

/** From `at` on, until the next step, this is the balance. */
export interface Step {
  readonly at: Instant;
  readonly balance: Amount;
}

export interface Recorded {
  /** As it was before the first of the postings. */
  readonly state: EndUserState;
  /** Oldest first. */
  readonly postings: readonly Posting[];
}

export interface Range {
  readonly from: Instant;
  readonly to: Instant;
}

/** The steps within a range, ends included. The first one is at `from`; steps that change nothing are left out. */
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

/** What is due and was not among the postings. */
function settledAt(state: EndUserState, at: Instant): EndUserState {
  let current = state;
  for (let event = nextEvent(current, at); event !== null; event = nextEvent(current, at))
    current = applyAll(current, event);
  return liveState(current, at);
}

/** The next instant at which a cycle ends, and with it what is left of it. */
function nextChange({ cycles }: EndUserState, after: Instant): Instant {
  let next = INSTANT_MAX + 1;
  for (const { end } of cycles) if (end > after && end < next) next = end;
  return next;
}

/** One step an instant; before the range, only the last one counts. */
function note(steps: Step[], step: Step): void {
  const last = steps.at(-1);
  if (last?.at === step.at) steps.pop();
  if (steps.at(-1)?.balance !== step.balance) steps.push(step);
}
