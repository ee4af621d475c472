// The rules: decides a command on the settled state of an end user. A decision is an outcome and the postings that it
// leads to; `apply.ts` defines what postings do. Pure, so that every store and every retry makes the same decision.

import assert from 'node:assert/strict';
import { activeBalance } from './balance.ts';
import type { Add, Command, StartCycle, StopCycle, Subtract } from './command.ts';
import { type Cycle, endOf, hasEnded } from './cycle.ts';
import { capture, hold, release } from './decide-holds.ts';
import { type Referenced, refund } from './decide-refund.ts';
import { accepted, type Decision, entryOf, type Moment, opened, refused } from './decision.ts';
import { draw } from './draw.ts';
import type { Instant } from './instant.ts';
import { isNote, type Posting, postingTo } from './posting.ts';
import { refuseTooLarge } from './room.ts';
import type { EndUserState } from './state.ts';

/**
 * @param state of the command's end user, settled at `moment.now`
 * @param referenced the transaction that a refund refers to; null if it does not exist, and for other commands
 */
export function decide(
  state: EndUserState,
  command: Command,
  moment: Moment,
  referenced: Referenced | null = null,
): Decision {
  if (command.kind === 'settle') return accepted(null, []);
  assert(command.note == null || isNote(command.note), 'notes are validated at the API');
  switch (command.kind) {
    case 'add':
      return add(state, command, moment);
    case 'subtract':
      return subtract(state, command, moment);
    case 'start-cycle':
      return startCycle(state, command, moment);
    case 'stop-cycle':
      return stopCycle(state, command, moment);
    case 'hold':
      return hold(state, command, moment);
    case 'capture':
      return capture(state, command, moment);
    case 'release':
      return release(state, command, moment);
    case 'refund':
      return refund(state, command, moment, referenced);
  }
}

function add(state: EndUserState, command: Add, moment: Moment): Decision {
  const { amount, validityDays } = command;
  const refusal = refuseTooLarge(state, { amount, end: endOf(moment.now, validityDays) }, moment.now);
  if (refusal) return refused(refusal);
  const entry = entryOf(command, moment);
  return accepted(entry.transactionId, [opened('one-time', command, entry).opening]);
}

function subtract({ cycles }: EndUserState, command: Subtract, moment: Moment): Decision {
  const draws = draw(cycles, command.amount, moment.now);
  if (draws === null) {
    const available = activeBalance(cycles, moment.now);
    return refused({ refused: 'InsufficientFunds', requested: command.amount, available });
  }
  const entry = entryOf(command, moment);
  const postings = draws.map(({ cycle, amount }) => postingTo(cycle, -amount, entry));
  return accepted(entry.transactionId, postings);
}

function startCycle(state: EndUserState, command: StartCycle, moment: Moment): Decision {
  const active = activeCycle(state, moment.now);
  if (active && command.onActive === 'refuse') return refused({ refused: 'CycleAlreadyActive', cycle: active });
  const { amount, validityDays } = command;
  // The replaced cycle is stopped, so its next renewal needs no room.
  const cycles = active ? state.cycles.map((cycle) => (cycle === active ? canceled(cycle) : cycle)) : state.cycles;
  const end = endOf(moment.now, validityDays);
  const refusal = refuseTooLarge({ ...state, cycles }, { amount, end }, moment.now);
  if (refusal) return refused(refusal);
  const stops = active ? [stopping(active, command, moment)] : [];
  const entry = entryOf(command, moment);
  const { cycle, opening } = opened('recurring', command, entry);
  return accepted(entry.transactionId, [...stops, opening], { cycle });
}

function stopCycle(state: EndUserState, command: StopCycle, moment: Moment): Decision {
  const active = activeCycle(state, moment.now);
  if (active) {
    const posting = stopping(active, command, moment);
    return accepted(posting.transactionId, [posting], { cycle: canceled(active) });
  }
  // Stopping again returns the cycle that was stopped last, until that cycle ends.
  const last = state.cycles.find((cycle) => cycle.status === 'canceled' && !hasEnded(cycle, moment.now));
  return last ? accepted(null, [], { cycle: last }) : refused({ refused: 'CycleNotFound' });
}

function stopping(active: Cycle, command: StartCycle | StopCycle, moment: Moment): Posting {
  return postingTo(active, 0, { ...entryOf(command, moment), kind: 'stop-cycle' });
}

function canceled(cycle: Cycle): Cycle {
  return { ...cycle, status: 'canceled' };
}

function activeCycle({ cycles }: EndUserState, now: Instant): Cycle | undefined {
  return cycles.find((cycle) => cycle.type === 'recurring' && cycle.status === 'active' && !hasEnded(cycle, now));
}
