// Decides the outcome of a command, given the settled state of its end user. The decision depends only on the
// arguments, so every store and every retry makes the same decision.

import assert from 'node:assert/strict';
import { activeBalance } from './balance.ts';
import type { Add, Command, Subtract } from './command.ts';
import { startCycle, stopCycle } from './decide-cycles.ts';
import { capture, hold, release } from './decide-holds.ts';
import { type Referenced, refund } from './decide-refund.ts';
import { accepted, type Decision, entryOf, type Moment, opened, planOf, refused } from './decision.ts';
import { draw } from './draw.ts';
import { endOf } from './plan.ts';
import { isNote, postingTo } from './posting.ts';
import { refuseTooLarge } from './room.ts';
import type { EndUserState } from './state.ts';

/**
 * @param state the state of the command's end user, settled at `moment.now`
 * @param referenced for a refund, the transaction to refund if it exists; otherwise null
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
  const plan = planOf(command);
  const refusal = refuseTooLarge(state, { amount: command.amount, end: endOf(moment.now, plan) }, moment.now);
  if (refusal) return refused(refusal);
  const entry = entryOf(command, moment);
  return accepted(entry.transactionId, [opened('one-time', plan, entry).opening]);
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
