// Decides the outcome of commands that start, replace or stop a recurring cycle, or schedule a plan.

import assert from 'node:assert/strict';
import type { SeenCycle, StartCycle, StopCycle } from './command.ts';
import { type Cycle, hasEnded, isActiveRecurring, renews } from './cycle.ts';
import { accepted, type Decision, entryOf, type Moment, opened, planOf, refused } from './decision.ts';
import type { Instant } from './instant.ts';
import { endOf, isInRange } from './plan.ts';
import { type Posting, postingTo } from './posting.ts';
import { refuseTooLarge, refuseTooLargePlan } from './room.ts';
import type { EndUserState } from './state.ts';

export function startCycle(state: EndUserState, command: StartCycle, moment: Moment): Decision {
  const active = activeCycle(state, moment.now);
  if (active && command.seen && !isSeen(active, command.seen))
    return refused({ refused: 'CycleAlreadyActive', cycle: active });
  if (active && command.onActive === 'at_period_end' && renews(active))
    return schedulePlan(state, active, command, moment);
  if (active && command.onActive !== 'replace') return refused({ refused: 'CycleAlreadyActive', cycle: active });
  const plan = planOf(command);
  // The replaced cycle will not renew, so no room is reserved for the credits of its next period.
  const cycles = active ? state.cycles.map((cycle) => (cycle === active ? canceled(cycle) : cycle)) : state.cycles;
  const wanted = { amount: command.amount, end: endOf(moment.now, plan), rolloverMax: plan.rolloverMax };
  const refusal = refuseTooLarge({ ...state, cycles }, wanted, moment.now);
  if (refusal) return refused(refusal);
  const stops = active ? [stopping(active, command, moment)] : [];
  const entry = entryOf(command, moment);
  const { cycle, opening } = opened('recurring', plan, entry);
  return accepted(entry.transactionId, [...stops, opening], { cycle });
}

/** Schedules a plan to begin when the current period ends. Replaces any plan that is already scheduled. */
function schedulePlan(state: EndUserState, active: Cycle, command: StartCycle, moment: Moment): Decision {
  const plan = planOf(command);
  const refusal = refuseTooLargePlan(state, active, plan);
  if (refusal) return refused(refusal);
  assert(isInRange(plan), 'amounts are validated at the API');
  const entry = { ...entryOf(command, moment), kind: 'schedule-plan' } as const;
  const posting = { ...postingTo(active, 0, entry), terms: { type: 'recurring', plan } } as const;
  const next = { id: entry.transactionId, plan };
  return accepted(entry.transactionId, [posting], { cycle: { ...active, next } });
}

export function stopCycle(state: EndUserState, command: StopCycle, moment: Moment): Decision {
  const active = activeCycle(state, moment.now);
  if (active) {
    const posting = stopping(active, command, moment);
    return accepted(posting.transactionId, [posting], { cycle: canceled(active) });
  }
  // A repeated stop returns the cycle that was stopped last, until that cycle ends.
  const last = state.cycles.find((cycle) => cycle.status === 'canceled' && !hasEnded(cycle, moment.now));
  return last ? accepted(null, [], { cycle: last }) : refused({ refused: 'CycleNotFound' });
}

export function isSeen({ id, next }: Cycle, seen: SeenCycle): boolean {
  return id === seen.cycle && (next?.id ?? null) === seen.next;
}

function stopping(active: Cycle, command: StartCycle | StopCycle, moment: Moment): Posting {
  return postingTo(active, 0, { ...entryOf(command, moment), kind: 'stop-cycle' });
}

function canceled(cycle: Cycle): Cycle {
  return { ...cycle, status: 'canceled', next: null };
}

function activeCycle({ cycles }: EndUserState, now: Instant): Cycle | undefined {
  return cycles.find((cycle) => isActiveRecurring(cycle) && !hasEnded(cycle, now));
}
