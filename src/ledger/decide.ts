// The rules: decides a command on the settled state of an end user. A decision is an outcome and the postings that it
// leads to; `apply.ts` defines what postings do. Pure, so that every store, the tests and a retried batch decide alike.

import assert from 'node:assert/strict';
import { AMOUNT_MAX, type Amount, isAmount } from './amount.ts';
import { activeBalance } from './balance.ts';
import {
  ACCEPTED,
  type Add,
  type Command,
  type Outcome,
  type Refusal,
  type StartCycle,
  type StopCycle,
  type Subtract,
  type WriteCommand,
} from './command.ts';
import { type Cycle, type CycleType, endOf, hasEnded, renews } from './cycle.ts';
import type { Instant } from './instant.ts';
import { type Entry, isNote, openingOf, type Posting, postingTo } from './posting.ts';
import type { EndUserState } from './state.ts';
import type { TransactionId } from './transaction-id.ts';

export interface Decision {
  readonly outcome: Outcome;
  /** In order; empty if nothing changes. */
  readonly postings: readonly Posting[];
}

/** The instant of a decision, and a source of ascending transaction ids. */
export interface Moment {
  readonly now: Instant;
  readonly nextId: () => TransactionId;
}

type Cycles = readonly Cycle[];

/** @param state the state of the command's end user, settled at `moment.now` */
export function decide({ cycles }: EndUserState, command: Command, moment: Moment): Decision {
  if (command.kind === 'settle') return { outcome: ACCEPTED, postings: [] };
  assert(command.note == null || isNote(command.note), 'notes are validated at the API');
  switch (command.kind) {
    case 'add':
      return add(cycles, command, moment);
    case 'subtract':
      return subtract(cycles, command, moment);
    case 'start-cycle':
      return startCycle(cycles, command, moment);
    case 'stop-cycle':
      return stopCycle(cycles, command, moment);
  }
}

function add(cycles: Cycles, command: Add, moment: Moment): Decision {
  const end = endOf(moment.now, command.validityDays);
  const refusal = refuseTooLarge(cycles, { amount: command.amount, end, now: moment.now });
  if (refusal) return refused(refusal);
  return { outcome: ACCEPTED, postings: [open('one-time', command, moment).opening] };
}

function subtract(cycles: Cycles, command: Subtract, moment: Moment): Decision {
  assert(command.amount >= 1, 'amounts are validated at the API');
  if (!covers(cycles, command.amount, moment.now)) {
    const available = activeBalance(cycles, moment.now);
    return refused({ refused: 'InsufficientFunds', requested: command.amount, available });
  }
  const entry = entryOf(command, moment);
  const postings: Posting[] = [];
  let wanted = command.amount;
  for (let index = 0; wanted > 0; index++) {
    const cycle = cycles[index];
    assert(cycle !== undefined, 'the balance covers the subtraction');
    // Cycles are half-open, [start, end): a cycle that ends exactly now no longer counts.
    if (hasEnded(cycle, moment.now) || cycle.remaining === 0) continue;
    const drawn = Math.min(wanted, cycle.remaining);
    postings.push(postingTo(cycle, -drawn, entry));
    wanted -= drawn;
  }
  return { outcome: ACCEPTED, postings };
}

/** Whether `wanted` credits can be spent. Stops early: the first few of a thousand cycles are usually enough. */
function covers(cycles: Cycles, wanted: Amount, now: Instant): boolean {
  let missing = wanted;
  for (let index = 0; missing > 0; index++) {
    const cycle = cycles[index];
    if (cycle === undefined) return false;
    if (!hasEnded(cycle, now)) missing -= cycle.remaining;
  }
  return true;
}

function startCycle(cycles: Cycles, command: StartCycle, moment: Moment): Decision {
  const active = activeCycle(cycles, moment.now);
  if (active && command.onActive === 'refuse') return refused({ refused: 'CycleAlreadyActive', cycle: active });
  const end = endOf(moment.now, command.validityDays);
  // A stopped cycle needs no room for its next renewal.
  const others = active ? cycles.map((cycle) => (cycle === active ? canceled(cycle) : cycle)) : cycles;
  const refusal = refuseTooLarge(others, { amount: command.amount, end, now: moment.now });
  if (refusal) return refused(refusal);
  const stops = active ? [stopping(active, command, moment)] : [];
  const { cycle, opening } = open('recurring', command, moment);
  return { outcome: { refused: null, cycle }, postings: [...stops, opening] };
}

function stopCycle(cycles: Cycles, command: StopCycle, moment: Moment): Decision {
  const active = activeCycle(cycles, moment.now);
  if (active)
    return { outcome: { refused: null, cycle: canceled(active) }, postings: [stopping(active, command, moment)] };
  // A second stop returns the cycle that was stopped last, until its end.
  const last = cycles.find((cycle) => cycle.status === 'canceled' && !hasEnded(cycle, moment.now));
  return { outcome: last ? { refused: null, cycle: last } : { refused: 'CycleNotFound' }, postings: [] };
}

function stopping(active: Cycle, command: StartCycle | StopCycle, moment: Moment): Posting {
  return postingTo(active, 0, { ...entryOf(command, moment), kind: 'stop-cycle' });
}

function canceled(cycle: Cycle): Cycle {
  return { ...cycle, status: 'canceled' };
}

function open(type: CycleType, command: Add | StartCycle, moment: Moment): { cycle: Cycle; opening: Posting } {
  const { amount, validityDays } = command;
  assert(isAmount(amount), 'amounts are validated at the API');
  const entry = entryOf(command, moment);
  const start = moment.now;
  const cycle: Cycle = {
    id: entry.transactionId,
    period: 0,
    type,
    status: 'active',
    amount,
    remaining: amount,
    start,
    end: endOf(start, validityDays),
    validityDays,
  };
  return { cycle, opening: openingOf(cycle, entry) };
}

function entryOf({ kind, actor, note = null }: WriteCommand, { now, nextId }: Moment): Entry {
  return { transactionId: nextId(), kind, createdAt: now, actor, note };
}

function refused(refusal: Refusal): Decision {
  return { outcome: refusal, postings: [] };
}

function activeCycle(cycles: Cycles, now: Instant): Cycle | undefined {
  return cycles.find((cycle) => cycle.type === 'recurring' && cycle.status === 'active' && !hasEnded(cycle, now));
}

/**
 * Refuses credits that would raise the balance above 2^53−1, now or at the next renewal of the active cycle. A renewal
 * cannot be refused, so room is kept for it. Later renewals need no check: by then, other credits can only have
 * expired.
 */
function refuseTooLarge(cycles: Cycles, wanted: { amount: Amount; end: Instant; now: Instant }): Refusal | null {
  const { amount, end, now } = wanted;
  let available = AMOUNT_MAX - activeBalance(cycles, now);
  const renewing = cycles.find(renews);
  if (renewing && end > renewing.end) {
    // The credits that are left in the current period expire at its end.
    available = Math.min(available, AMOUNT_MAX - renewing.amount - activeBalance(cycles, renewing.end));
    assert(available >= 0, 'earlier additions kept room for the renewal');
  }
  return amount <= available ? null : { refused: 'BalanceTooLarge', requested: amount, available };
}
