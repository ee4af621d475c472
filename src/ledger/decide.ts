// The rules: what a command does to the settled cycles of its end user. Pure, so that every store, the tests and a
// batch that runs a second time decide alike.

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
} from './command.ts';
import { type Cycle, type CycleType, hasEnded, renews } from './cycle.ts';
import { endOf, type Instant } from './instant.ts';
import { isNote, openingOf, type Posting, posting } from './posting.ts';
import type { TransactionId } from './transaction-id.ts';

export interface Decision {
  readonly outcome: Outcome;
  /** The cycles afterwards: those that came in, each in its place, then what was started. */
  readonly cycles: readonly Cycle[];
  readonly postings: readonly Posting[];
}

/** The instant of a decision, and the next id to give: ids come in ascending order. */
export interface Moment {
  readonly now: Instant;
  readonly nextId: () => TransactionId;
}

type Cycles = readonly Cycle[];

/** @param cycles of the command's end user, settled at `moment.now`, in burn order */
export function decide(cycles: Cycles, command: Command, moment: Moment): Decision {
  const note = command.kind === 'renew' ? null : command.note;
  assert(note == null || isNote(note), 'a note that is empty or too long is refused before it gets here');
  switch (command.kind) {
    case 'add':
      return add(cycles, command, moment);
    case 'subtract':
      return subtract(cycles, command, moment);
    case 'start-cycle':
      return startCycle(cycles, command, moment);
    case 'stop-cycle':
      return stopCycle(cycles, command, moment);
    case 'renew':
      return { outcome: ACCEPTED, cycles, postings: [] };
  }
}

function add(cycles: Cycles, command: Add, moment: Moment): Decision {
  const end = endOf(moment.now, command.validityDays);
  const refusal = refuseTooLarge(cycles, { amount: command.amount, end, now: moment.now });
  if (refusal) return unchanged(cycles, refusal);
  const { cycle, opening } = open('one-time', command, moment);
  return { outcome: ACCEPTED, cycles: [...cycles, cycle], postings: [opening] };
}

function subtract(cycles: Cycles, command: Subtract, moment: Moment): Decision {
  assert(isAmount(command.amount), 'a subtraction of nothing is refused before it gets here');
  if (!covers(cycles, command.amount, moment.now)) {
    const available = activeBalance(cycles, moment.now);
    return unchanged(cycles, { refused: 'InsufficientFunds', requested: command.amount, available });
  }
  const { actor, note = null } = command;
  const entry = { transactionId: moment.nextId(), kind: 'subtract', createdAt: moment.now, actor, note } as const;
  const after = cycles.slice();
  const postings: Posting[] = [];
  let wanted = command.amount;
  for (let index = 0; wanted > 0; index++) {
    const cycle = cycles[index];
    assert(cycle !== undefined, 'the balance covers the subtraction');
    // A cycle that ends exactly now is already over: cycles are half-open, [start, end).
    if (hasEnded(cycle, moment.now) || cycle.remaining === 0) continue;
    const drawn = Math.min(wanted, cycle.remaining);
    after[index] = { ...cycle, remaining: cycle.remaining - drawn };
    postings.push(posting(cycle, { ...entry, amount: -drawn }));
    wanted -= drawn;
  }
  return { outcome: ACCEPTED, cycles: after, postings };
}

/** Whether so much can be spent: of a thousand cycles the first ones say so. */
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
  if (active && command.onActive === 'refuse')
    return unchanged(cycles, { refused: 'CycleAlreadyActive', cycle: active });
  const end = endOf(moment.now, command.validityDays);
  const before = active ? stop(cycles, active, command, moment) : unchanged(cycles, ACCEPTED);
  const refusal = refuseTooLarge(before.cycles, { amount: command.amount, end, now: moment.now });
  if (refusal) return unchanged(cycles, refusal);
  const { cycle, opening } = open('recurring', command, moment);
  return {
    outcome: { refused: null, cycle },
    cycles: [...before.cycles, cycle],
    postings: [...before.postings, opening],
  };
}

function stopCycle(cycles: Cycles, command: StopCycle, moment: Moment): Decision {
  const active = activeCycle(cycles, moment.now);
  if (active) return stop(cycles, active, command, moment);
  // Stopping twice answers the same cycle until its end. Where several stopped ones overlap, the last one started is current.
  const canceled = cycles.findLast((cycle) => cycle.status === 'canceled' && !hasEnded(cycle, moment.now));
  return unchanged(cycles, canceled ? { refused: null, cycle: canceled } : { refused: 'CycleNotFound' });
}

function stop(cycles: Cycles, active: Cycle, command: StartCycle | StopCycle, { now, nextId }: Moment): Decision {
  const { actor, note = null } = command;
  const entry = { transactionId: nextId(), kind: 'stop-cycle', amount: 0, createdAt: now, actor, note } as const;
  const canceled: Cycle = { ...active, status: 'canceled' };
  return {
    outcome: { refused: null, cycle: canceled },
    cycles: cycles.map((cycle) => (cycle === active ? canceled : cycle)),
    postings: [posting(canceled, entry)],
  };
}

function open(type: CycleType, command: Add | StartCycle, { now, nextId }: Moment): { cycle: Cycle; opening: Posting } {
  const { amount, validityDays, actor, kind, note = null } = command;
  assert(isAmount(amount), 'an addition of nothing is refused before it gets here');
  const id = nextId();
  const end = endOf(now, validityDays);
  const cycle: Cycle = {
    id,
    period: 0,
    type,
    status: 'active',
    amount,
    remaining: amount,
    start: now,
    end,
    validityDays,
  };
  return { cycle, opening: openingOf(cycle, { transactionId: id, kind, actor, note }) };
}

function unchanged(cycles: Cycles, outcome: Outcome): Decision {
  return { outcome, cycles, postings: [] };
}

function activeCycle(cycles: Cycles, now: Instant): Cycle | undefined {
  return cycles.find((cycle) => cycle.type === 'recurring' && cycle.status === 'active' && !hasEnded(cycle, now));
}

/**
 * Refuses credits that would take the end user past 2^53−1, now or when the active cycle next renews: a renewal cannot
 * be refused any more, so the room for it is kept. At later renewals no more than now is left of the rest.
 */
function refuseTooLarge(cycles: Cycles, wanted: { amount: Amount; end: Instant; now: Instant }): Refusal | null {
  const { amount, end, now } = wanted;
  let available = AMOUNT_MAX - activeBalance(cycles, now);
  const renewing = cycles.find(renews);
  if (renewing && end > renewing.end) {
    // What is left of this period counts no more at its end.
    available = Math.min(available, AMOUNT_MAX - renewing.amount - activeBalance(cycles, renewing.end));
    assert(available >= 0, 'the room for a renewal was kept by every addition before');
  }
  return amount <= available ? null : { refused: 'BalanceTooLarge', requested: amount, available };
}
