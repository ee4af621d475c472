// Applies postings to the state of an end user. Only this file defines what a posting does: batches, the replay of the
// journal, the audit, history and charts are folds of it. An impossible posting violates an invariant.

import { assertCycle, type Cycle, hasEnded, isActiveRecurring, renews } from './cycle.ts';
import { assertInvariant } from './invariant.ts';
import type { Posting } from './posting.ts';
import type { EndUserState } from './state.ts';

/** @throws InvariantViolation; `state` itself is never changed */
export function apply(state: EndUserState, posting: Posting): EndUserState {
  return applyAll(state, [posting]);
}

/** @param postings in the order in which they happened */
export function applyAll(state: EndUserState, postings: readonly Posting[]): EndUserState {
  if (postings.length === 0) return state;
  const cycles = state.cycles.slice();
  for (const posting of postings) applyTo(cycles, posting);
  return { cycles };
}

function applyTo(cycles: Cycle[], posting: Posting): void {
  switch (posting.kind) {
    case 'add':
      open(cycles, posting);
      break;
    case 'start-cycle':
      supersede(cycles, posting);
      open(cycles, posting);
      break;
    case 'renew':
      renew(cycles, posting);
      break;
    case 'subtract':
      spend(cycles, posting);
      break;
    case 'stop-cycle':
      stop(cycles, posting);
      break;
  }
}

function open(cycles: Cycle[], posting: Posting): void {
  const { cycleId, kind, transactionId } = posting;
  const isThere = cycles.some(({ id }) => id === cycleId);
  assertInvariant(3, !isThere, 'a cycle is opened once');
  assertInvariant(4, cycleId === transactionId, 'a cycle has the id of the transaction that starts it');
  const cycle = periodOf(posting);
  assertInvariant(3, cycle.period === 0, 'a cycle is opened in its first period');
  assertInvariant(
    3,
    (cycle.type === 'one-time') === (kind === 'add'),
    `a posting of kind ${kind} does not open a ${cycle.type} cycle`,
  );
  cycles.push(cycle);
}

/** When a cycle starts, a canceled cycle that has not ended becomes superseded. */
function supersede(cycles: Cycle[], { createdAt: now }: Posting): void {
  cycles.forEach((cycle, index) => {
    // A cycle that has ended still counts as active until its renewal is applied.
    assertInvariant(3, !isActiveRecurring(cycle), 'an end user has at most one active recurring cycle');
    if (cycle.status === 'canceled' && !hasEnded(cycle, now)) cycles[index] = { ...cycle, status: 'superseded' };
  });
}

/** Opens the next period at the end of the last one. The cycle then comes last in burn order. */
function renew(cycles: Cycle[], posting: Posting): void {
  const index = indexOf(cycles, posting);
  const ended = cycles[index] as Cycle;
  const next = periodOf(posting);
  assertInvariant(3, renews(ended), 'only an active recurring cycle is renewed');
  assertInvariant(3, ended.end === next.start, 'a period starts where the one before it ends');
  // `assertCycle` has checked that the period number fits the start and the validity.
  const isSame = next.amount === ended.amount && next.validityDays === ended.validityDays;
  assertInvariant(3, isSame, 'a renewal opens the next period of the same cycle, with the same amount');
  cycles.splice(index, 1);
  cycles.push(next);
}

/** The cycle right after a posting that opens it or its next period. */
function periodOf(posting: Posting): Cycle {
  const { cycleId: id, period, amount, createdAt: start, expiresAt: end, terms } = posting;
  assertInvariant(4, terms !== null, 'a posting that opens a cycle has terms');
  const { type, validityDays } = terms;
  const cycle: Cycle = { id, period, type, status: 'active', amount, remaining: amount, start, end, validityDays };
  assertCycle(cycle);
  return cycle;
}

function spend(cycles: Cycle[], posting: Posting): void {
  const index = runningIndexOf(cycles, posting);
  const cycle = cycles[index] as Cycle;
  const { amount } = posting;
  assertInvariant(1, Number.isSafeInteger(amount), 'a subtraction takes a whole number of credits');
  assertInvariant(
    1,
    amount < 0 && -amount <= cycle.remaining,
    `a subtraction of ${-amount} is between 1 and what remains`,
  );
  cycles[index] = { ...cycle, remaining: cycle.remaining + amount };
}

function stop(cycles: Cycle[], posting: Posting): void {
  const index = runningIndexOf(cycles, posting);
  const cycle = cycles[index] as Cycle;
  assertInvariant(1, posting.amount === 0, 'a stop moves no credits');
  assertInvariant(3, isActiveRecurring(cycle), 'only an active recurring cycle is stopped');
  cycles[index] = { ...cycle, status: 'canceled' };
}

function indexOf(cycles: readonly Cycle[], { cycleId }: Posting): number {
  const index = cycles.findIndex(({ id }) => id === cycleId);
  assertInvariant(4, index >= 0, 'a posting touches a cycle that was opened before');
  return index;
}

/** The index of the cycle that a subtraction or a stop touches. */
function runningIndexOf(cycles: readonly Cycle[], posting: Posting): number {
  const index = indexOf(cycles, posting);
  const { period, start, end } = cycles[index] as Cycle;
  const { createdAt } = posting;
  assertInvariant(4, posting.terms === null, 'only a posting that opens a cycle has terms');
  assertInvariant(4, period === posting.period, 'a posting touches the period that its cycle is in');
  assertInvariant(
    4,
    start <= createdAt && createdAt < end,
    'a posting is made between the start and the end of its cycle',
  );
  assertInvariant(4, posting.expiresAt === end, 'a posting expires when its cycle ends');
  return index;
}
