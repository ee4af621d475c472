// Applies postings to an end user's state. Only this file defines the effect of a posting. A posting that does not fit
// the state causes an `InvariantViolation`.

import { isAmount } from './amount.ts';
import {
  assertCycle,
  type Cycle,
  hasEnded,
  isActiveRecurring,
  newCycle,
  periodAfter,
  renews,
  scheduledCycle,
} from './cycle.ts';
import { type Hold, lapseId, lapseOrder } from './hold.ts';
import { assertInvariant } from './invariant.ts';
import { assertPlan, isSamePlan } from './plan.ts';
import type { Posting } from './posting.ts';
import type { EndUserState } from './state.ts';

/** @throws InvariantViolation, without modifying `state` */
export function apply(state: EndUserState, posting: Posting): EndUserState {
  return applyAll(state, [posting]);
}

/** @param postings oldest first */
export function applyAll(state: EndUserState, postings: readonly Posting[]): EndUserState {
  if (postings.length === 0) return state;
  const next: Draft = { cycles: state.cycles.slice(), foundAt: 0, holds: state.holds };
  for (const posting of postings) applyTo(next, posting);
  return { cycles: next.cycles, holds: next.holds };
}

/**
 * A state under construction. `cycles` is a copy that can be modified. `holds` must not be modified, because it might
 * still be the array of the earlier state. To change a hold, assign a new array to `holds`.
 */
interface Draft {
  readonly cycles: Cycle[];
  /** The index of the cycle that was found last. */
  foundAt: number;
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
      renew(draft, posting);
      break;
    case 'schedule-plan':
      schedulePlan(draft, posting);
      break;
    case 'change-plan':
      changePlan(draft.cycles, posting);
      open(draft.cycles, posting);
      break;
    case 'stop-cycle':
      stop(draft, posting);
      break;
    case 'subtract':
      assertInvariant(1, posting.amount < 0 && posting.held === 0, 'a subtraction only spends credits');
      change(draft, posting);
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
      refund(draft, posting);
      break;
  }
}

function open(cycles: Cycle[], posting: Posting): void {
  const { cycleId, kind, transactionId } = posting;
  const isThere = cycles.some(({ id }) => id === cycleId);
  assertInvariant(3, !isThere, 'a cycle is opened only once');
  assertInvariant(4, cycleId === transactionId, 'a cycle has the ID of the transaction that starts it');
  const cycle = firstPeriodOf(posting);
  const type = kind === 'start-cycle' || kind === 'change-plan' ? 'recurring' : 'one-time';
  assertInvariant(3, cycle.type === type, `a posting of kind ${kind} does not open a ${cycle.type} cycle`);
  cycles.push(cycle);
}

function supersede(cycles: Cycle[], { createdAt: now }: Posting): void {
  cycles.forEach((cycle, index) => {
    // This assertion also fails if the period of an active cycle has ended: the renewal must be applied first.
    assertInvariant(3, !isActiveRecurring(cycle), 'an end user has at most one active recurring cycle');
    if (cycle.status === 'canceled' && !hasEnded(cycle, now)) cycles[index] = { ...cycle, status: 'superseded' };
  });
}

/** A renewed cycle moves to the end of the spending order. */
function renew(draft: Draft, posting: Posting): void {
  const { cycles } = draft;
  const { period, amount, held, createdAt, expiresAt, terms } = posting;
  const index = indexOf(draft, posting);
  const ended = cycles[index] as Cycle;
  assertInvariant(3, renews(ended), 'only an active recurring cycle is renewed');
  assertInvariant(3, ended.next === null, 'a cycle is not renewed if another plan is scheduled');
  assertInvariant(3, ended.end === createdAt, 'a period starts when the previous period ends');
  assertInvariant(4, terms !== null, 'a posting that opens a period has terms');
  assertInvariant(
    3,
    terms.type === 'recurring' && isSamePlan(terms.plan, ended.plan),
    'a renewal keeps the plan of the cycle',
  );
  const next = periodAfter(ended, 1);
  const isNext = period === next.period && expiresAt === next.end && held === 0;
  assertInvariant(3, isNext, 'a renewal opens the next period of the same cycle');
  const rule = 'a renewal grants the credits of the plan and the unused credits that roll over';
  assertInvariant(1, amount === next.amount, rule);
  assertCycle(next);
  cycles.splice(index, 1);
  cycles.push(next);
}

function firstPeriodOf({ cycleId, period, amount, held, createdAt, expiresAt, terms }: Posting): Cycle {
  assertInvariant(4, terms !== null, 'a posting that opens a cycle has terms');
  const { type, plan } = terms;
  assertPlan(plan);
  assertInvariant(
    1,
    held === 0 && amount === plan.amount,
    'a cycle opens with the credits of its plan and without held credits',
  );
  assertInvariant(3, period === 0, 'a new cycle is in its first period');
  const cycle = newCycle(cycleId, type, plan);
  const isInTime = cycle.start === createdAt && cycle.end === expiresAt;
  assertInvariant(4, isInTime, 'a cycle starts when it is opened, and ends when its validity ends');
  assertCycle(cycle);
  return cycle;
}

/** Sets the plan that begins when the current period ends. Replaces a plan that was scheduled before. */
function schedulePlan(draft: Draft, posting: Posting): void {
  const { transactionId: id, amount, held, terms } = posting;
  const index = runningIndexOf(draft, { ...posting, terms: null });
  const cycle = draft.cycles[index] as Cycle;
  assertInvariant(1, amount === 0 && held === 0, 'scheduling a plan moves no credits');
  assertInvariant(3, renews(cycle), 'only a cycle that renews can have a scheduled plan');
  assertInvariant(4, terms !== null && terms.type === 'recurring', 'a scheduled plan has terms');
  assertPlan(terms.plan);
  draft.cycles[index] = { ...cycle, next: { id, plan: terms.plan } };
}

/** The active cycle becomes superseded; the caller opens the cycle of the scheduled plan. */
function changePlan(cycles: Cycle[], { cycleId, createdAt, terms, reference }: Posting): void {
  const index = cycles.findIndex(renews);
  const ended = cycles[index];
  const next = ended?.next;
  const isScheduled = next?.id === reference && terms !== null && isSamePlan(next.plan, terms.plan);
  assertInvariant(
    3,
    ended !== undefined && next != null && isScheduled,
    'a change of plan starts the plan that was scheduled last',
  );
  const { id } = scheduledCycle(ended, next);
  assertInvariant(
    3,
    id === cycleId && ended.end === createdAt,
    'a change of plan starts when the previous period ends',
  );
  cycles[index] = { ...ended, status: 'superseded', next: null };
}

function stop(draft: Draft, posting: Posting): void {
  const index = runningIndexOf(draft, posting);
  const cycle = draft.cycles[index] as Cycle;
  assertInvariant(1, posting.amount === 0 && posting.held === 0, 'stopping a cycle moves no credits');
  assertInvariant(3, isActiveRecurring(cycle), 'only an active recurring cycle is stopped');
  draft.cycles[index] = { ...cycle, status: 'canceled', next: null };
}

/**
 * The first posting of a transaction creates the hold; each further posting adds credits from another cycle to the
 * hold.
 */
function hold(draft: Draft, posting: Posting): void {
  const { transactionId: id, cycleId, period, amount, held, expiresAt: end, holdExpiresAt } = posting;
  assertInvariant(1, amount === 0 && isAmount(held), 'a hold only sets credits aside');
  assertInvariant(4, holdExpiresAt !== null && holdExpiresAt > posting.createdAt, 'a hold expires after it is created');
  // If the cycle has ended since the hold was created, the state might not contain the cycle. The audit checks that the
  // cycle was running when the hold was created.
  changeIfRunning(draft, posting);
  const part = { cycleId, period, amount: held, end };
  const existing = draft.holds.find((each) => each.id === id);
  const isSame = existing === undefined || existing.expiresAt === holdExpiresAt;
  assertInvariant(4, isSame, 'all postings of a hold have the same expiry');
  const others = draft.holds.filter((each) => each !== existing);
  draft.holds = inserted({ id, expiresAt: holdExpiresAt, parts: [...(existing?.parts ?? []), part] }, others);
}

function inserted(hold: Hold, holds: readonly Hold[]): readonly Hold[] {
  const behind = holds.findLastIndex((other) => lapseOrder(other, hold) < 0);
  return holds.toSpliced(behind + 1, 0, hold);
}

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
    const place = hold.parts.findIndex((each) => each.cycleId === cycleId && each.period === period);
    const part = hold.parts[place];
    const isPart = part !== undefined && part.amount === -held && part.end === expiresAt;
    assertInvariant(1, isPart, `a ${kind} closes a part of its hold in full`);
    const isLapsed = hold.expiresAt <= createdAt;
    assertInvariant(4, isLapsed === (kind === 'lapse'), 'a hold is open until it expires, and then lapses');
    if (kind === 'lapse')
      assertInvariant(4, posting.transactionId === lapseId(hold), 'the ID of a lapse is derived from its hold');
    const parts = hold.parts.toSpliced(place, 1);
    // The expiry of the hold does not change, so the hold keeps its position in the list.
    draft.holds =
      parts.length === 0
        ? draft.holds.filter((each) => each !== hold)
        : draft.holds.map((each) => (each === hold ? { ...hold, parts } : each));
  }
  if (held === 0) change(draft, posting);
  // If the cycle has ended, the state might not contain the cycle.
  else changeIfRunning(draft, posting);
  const takesOnlyHeld = expiresAt > createdAt || amount >= held;
  assertInvariant(1, takesOnlyHeld, 'a capture takes only held credits from an ended cycle');
}

/** Returns credits to the cycle that they came from, or opens a new cycle for credits of ended cycles. */
function refund(draft: Draft, posting: Posting): void {
  assertInvariant(1, isAmount(posting.amount) && posting.held === 0, 'a refund only returns credits');
  assertInvariant(4, posting.reference !== null, 'a refund names the transaction that it refunds');
  if (posting.terms !== null) open(draft.cycles, posting);
  else changeIfRunning(draft, posting);
}

const TERMS_RULE = 'only a posting that opens a cycle or a period, or schedules a plan, has terms';

/** Changes the cycle, unless the period of the posting has ended or is not in the state. */
function changeIfRunning(draft: Draft, posting: Posting): void {
  const { cycleId, period, createdAt, expiresAt } = posting;
  assertInvariant(4, posting.terms === null, TERMS_RULE);
  if (expiresAt > createdAt && find(draft, cycleId)?.period === period) change(draft, posting);
}

function change(draft: Draft, posting: Posting): void {
  const { amount, held } = posting;
  const index = runningIndexOf(draft, posting);
  const cycle = draft.cycles[index] as Cycle;
  const after = { ...cycle, remaining: cycle.remaining + amount, held: cycle.held + held };
  assertInvariant(1, Number.isSafeInteger(amount) && Number.isSafeInteger(held), 'credits are whole numbers');
  assertInvariant(1, after.remaining <= cycle.amount, 'the remaining credits of a cycle never exceed its amount');
  assertInvariant(
    1,
    after.held >= 0 && after.held <= after.remaining,
    'a transaction spends or holds only spendable credits',
  );
  draft.cycles[index] = after;
}

/** Finds the cycle of the posting. Asserts that the posting belongs to the current period of the cycle. */
function runningIndexOf(draft: Draft, posting: Posting): number {
  const index = indexOf(draft, posting);
  const { period, start, end } = draft.cycles[index] as Cycle;
  const { createdAt } = posting;
  assertInvariant(4, posting.terms === null, TERMS_RULE);
  assertInvariant(4, period === posting.period, 'a posting touches the current period of its cycle');
  assertInvariant(
    4,
    start <= createdAt && createdAt < end,
    'a posting is made between the start and the end of its cycle',
  );
  assertInvariant(4, posting.expiresAt === end, 'the expiry of a posting is the end of its cycle');
  return index;
}

function indexOf(draft: Draft, { cycleId }: Posting): number {
  const cycle = find(draft, cycleId);
  assertInvariant(4, cycle !== null, 'a posting touches only a cycle that an earlier posting opened');
  return draft.foundAt;
}

/**
 * Finds a cycle, and sets `foundAt` to its index. The search begins at the cycle that was found last, and alternates
 * between the cycles after and before it: a transaction can touch thousands of cycles, and its postings are in the
 * order of the cycles or, in a refund, in reverse order.
 */
function find(draft: Draft, cycleId: string): Cycle | null {
  const { cycles, foundAt } = draft;
  for (let step = 1; step <= cycles.length; step++) {
    const distance = step % 2 === 0 ? step / 2 : (1 - step) / 2;
    const index = (foundAt + distance + cycles.length) % cycles.length;
    const cycle = cycles[index] as Cycle;
    if (cycle.id !== cycleId) continue;
    draft.foundAt = index;
    return cycle;
  }
  return null;
}
