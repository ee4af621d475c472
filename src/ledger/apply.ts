// Applies postings to the state of an end user. Only this file defines what a posting does: batches, the replay of the
// journal, the audit, the history and the charts all use it. An impossible posting violates an invariant.

import { isAmount } from './amount.ts';
import { assertCycle, type Cycle, hasEnded, isActiveRecurring, renews } from './cycle.ts';
import { type Hold, lapseId, lapseOrder } from './hold.ts';
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
  const next = { cycles: state.cycles.slice(), holds: state.holds };
  for (const posting of postings) applyTo(next, posting);
  return next;
}

/**
 * A state under construction. Its array of cycles is a private copy; its array of holds is replaced, never modified.
 */
interface Draft {
  readonly cycles: Cycle[];
  holds: readonly Hold[];
}

function applyTo(draft: Draft, posting: Posting): void {
  switch (posting.kind) {
    case 'add':
      open(draft.cycles, posting);
      break;
    case 'start-cycle':
      supersede(draft.cycles, posting);
      open(draft.cycles, posting);
      break;
    case 'renew':
      renew(draft.cycles, posting);
      break;
    case 'stop-cycle':
      stop(draft.cycles, posting);
      break;
    case 'subtract':
      assertInvariant(1, posting.amount < 0 && posting.held === 0, 'a subtraction only spends credits');
      change(draft.cycles, posting, runningIndexOf(draft.cycles, posting));
      break;
    case 'hold':
      hold(draft, posting);
      break;
    case 'capture':
    case 'release':
    case 'lapse':
      closeHold(draft, posting);
      break;
    case 'refund':
      refund(draft.cycles, posting);
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
  const type = kind === 'start-cycle' ? 'recurring' : 'one-time';
  assertInvariant(3, cycle.type === type, `a ${kind} opens no ${cycle.type} cycle`);
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

/** Opens the next period, which starts at the end of the current one. The cycle then comes last in burn order. */
function renew(cycles: Cycle[], posting: Posting): void {
  const index = cycles.findIndex(({ id }) => id === posting.cycleId);
  assertInvariant(4, index >= 0, 'a posting touches a cycle that was opened before');
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
  assertInvariant(1, posting.held === 0, 'a cycle opens without held credits');
  const { type, validityDays } = terms;
  const remaining = amount;
  const cycle: Cycle = { id, period, type, status: 'active', amount, remaining, held: 0, start, end, validityDays };
  assertCycle(cycle);
  return cycle;
}

function stop(cycles: Cycle[], posting: Posting): void {
  const index = runningIndexOf(cycles, posting);
  const cycle = cycles[index] as Cycle;
  assertInvariant(1, posting.amount === 0 && posting.held === 0, 'a stop moves no credits');
  assertInvariant(3, isActiveRecurring(cycle), 'only an active recurring cycle is stopped');
  cycles[index] = { ...cycle, status: 'canceled' };
}

/** The first posting of a transaction creates the hold. Each further posting adds credits of another cycle to it. */
function hold(draft: Draft, posting: Posting): void {
  const { transactionId: id, cycleId, period, amount, held, expiresAt: end, holdExpiresAt } = posting;
  assertInvariant(1, amount === 0 && isAmount(held), 'a hold only sets credits aside');
  assertInvariant(4, holdExpiresAt !== null && holdExpiresAt > posting.createdAt, 'a hold expires after it is created');
  // If the cycle has ended since the hold was created, it may not be loaded. The audit checks that it was running then.
  changeIfRunning(draft.cycles, posting);
  const part = { cycleId, period, amount: held, end };
  const existing = draft.holds.find((each) => each.id === id);
  const isSame = existing === undefined || existing.expiresAt === holdExpiresAt;
  assertInvariant(4, isSame, 'a hold expires at one instant');
  const others = draft.holds.filter((each) => each !== existing);
  draft.holds = inserted({ id, expiresAt: holdExpiresAt, parts: [...(existing?.parts ?? []), part] }, others);
}

function inserted(hold: Hold, holds: readonly Hold[]): readonly Hold[] {
  const behind = holds.findLastIndex((other) => lapseOrder(other, hold) < 0);
  return holds.toSpliced(behind + 1, 0, hold);
}

/** Closes the part of a hold that belongs to one cycle. */
function closeHold(draft: Draft, posting: Posting): void {
  const { kind, cycleId, period, amount, held, expiresAt, createdAt, reference } = posting;
  if (kind === 'capture')
    assertInvariant(
      1,
      amount <= 0 && held <= 0 && amount + held < 0,
      'a capture only spends credits and closes a hold',
    );
  else assertInvariant(1, amount === 0 && held < 0, `a ${kind} only returns credits`);
  assertInvariant(4, reference !== null, `a ${kind} names its hold`);
  if (held < 0) {
    const hold = draft.holds.find(({ id }) => id === reference);
    assertInvariant(1, hold !== undefined, `a ${kind} closes an open hold`);
    const part = hold.parts.find((each) => each.cycleId === cycleId && each.period === period);
    const isPart = part !== undefined && part.amount === -held && part.end === expiresAt;
    assertInvariant(1, isPart, `a ${kind} returns what was held`);
    const isLapsed = hold.expiresAt <= createdAt;
    assertInvariant(4, isLapsed === (kind === 'lapse'), 'a hold is open until it expires, and lapses then');
    if (kind === 'lapse') assertInvariant(4, posting.transactionId === lapseId(hold), 'a lapse has the id of its hold');
    const parts = hold.parts.filter((each) => each !== part);
    // The hold lapses at the same instant as before, so it keeps its place.
    draft.holds =
      parts.length === 0
        ? draft.holds.filter((each) => each !== hold)
        : draft.holds.map((each) => (each === hold ? { ...hold, parts } : each));
  }
  if (held === 0) change(draft.cycles, posting, runningIndexOf(draft.cycles, posting));
  // As in `hold`, the cycle may not be loaded.
  else if (!changeIfRunning(draft.cycles, posting) && expiresAt <= createdAt)
    assertInvariant(1, amount >= held, 'a capture spends only held credits of an ended cycle');
}

/** Returns credits to the cycle that they came from, or to the new cycle that the posting opens. */
function refund(cycles: Cycle[], posting: Posting): void {
  assertInvariant(1, isAmount(posting.amount) && posting.held === 0, 'a refund gives credits back');
  assertInvariant(4, posting.reference !== null, 'a refund names the transaction that it refunds');
  if (posting.terms !== null) open(cycles, posting);
  else changeIfRunning(cycles, posting);
}

/** @returns whether the period of the posting is running; an ended period never changes */
function changeIfRunning(cycles: Cycle[], posting: Posting): boolean {
  const { cycleId, period, createdAt, expiresAt } = posting;
  assertInvariant(4, posting.terms === null, 'only a posting that opens a cycle has terms');
  const index = cycles.findIndex((cycle) => cycle.id === cycleId && cycle.period === period);
  if (expiresAt <= createdAt || index < 0) return false;
  change(cycles, posting, runningIndexOf(cycles, posting));
  return true;
}

function change(cycles: Cycle[], { amount, held }: Posting, index: number): void {
  const cycle = cycles[index] as Cycle;
  const after = { ...cycle, remaining: cycle.remaining + amount, held: cycle.held + held };
  assertInvariant(1, Number.isSafeInteger(amount) && Number.isSafeInteger(held), 'credits are whole numbers');
  assertInvariant(1, after.remaining <= cycle.amount, 'a cycle never has more than its amount');
  assertInvariant(
    1,
    after.held >= 0 && after.held <= after.remaining,
    'what is spent or held of a cycle is within what can be spent',
  );
  cycles[index] = after;
}

/** The index of the cycle that a posting touches within its current period. */
function runningIndexOf(cycles: readonly Cycle[], posting: Posting): number {
  const index = cycles.findIndex(({ id }) => id === posting.cycleId);
  assertInvariant(4, index >= 0, 'a posting touches a cycle that was opened before');
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
