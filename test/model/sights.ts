// Counts the cases that must occur in the random histories.

import { dateOf } from './model-calendar.ts';
import { MOST, type Turned } from './model-end-user.ts';
import type { ModelBalance, ModelCommand, ModelOutcome } from './model-types.ts';

const SIGHTS = [
  'a balance is read before its renewal is stored',
  'a balance is read before a lapse is stored',
  'a past balance is read',
  'a past balance equals the balance that was read at that instant',
  'a future balance is read',
  'a COMMIT fails',
  'a history is filtered',
  'a key is used with another request',
  'a lapse is listed before it is stored',
  'an outcome is replayed',
  'a period of months begins on 29 February',
  'a period of months ends on an earlier day of the month, because that month is shorter',
  'a period of months that began in a shorter month ends on the original day of the month again',
  'a plan begins at the end of the period',
  'a renewal follows a change of plan without a request in between',
  'a renewal rolls over all unused credits',
  'a renewal rolls over the maximum, and the other unused credits expire',
  'a renewal rolls over exactly the maximum',
  'a renewal rolls over nothing, because all credits are spent or held',
  'a renewal rolls over credits after several missed periods',
  'a renewal rolls over the unused credits, but not those that are held',
  'a renewal rolls over credits of a period into which credits had rolled over',
  'a batch postpones an end user with too many due renewals',
  'a renewal is listed before it is stored',
  'add: BalanceTooLarge',
  'add: BalanceTooLarge because of a renewal',
  'add: BalanceTooLarge because of a scheduled plan',
  'add: BalanceTooLarge because of credits that may roll over',
  'add: accepted',
  'add: accepted with a validity in months',
  'capture: HoldNotFound',
  'capture: HoldNotFound at the instant at which the hold lapses',
  'capture: InsufficientFunds',
  'capture: accepted',
  'capture: accepted a millisecond before the hold lapses',
  'capture: less than was held, after a cycle has ended',
  'capture: less than was held',
  'capture: more than was held',
  'hold: BalanceTooLarge',
  'hold: InsufficientFunds',
  'hold: TooManyHolds',
  'hold: accepted',
  'refund: BalanceTooLarge',
  'refund: NotRefundable',
  'refund: RefundTooLarge',
  'refund: TransactionNotFound',
  'refund: accepted',
  'refund: credits have expired',
  'refund: all credits have expired',
  'refund: expired credits return as a new cycle',
  'preview: a cycle that would start now',
  'preview: a plan that would begin later',
  'preview: credits would expire',
  'preview: refused',
  'release: HoldNotFound',
  'release: accepted',
  'release: credits have expired',
  'start-cycle: BalanceTooLarge',
  'start-cycle: CycleAlreadyActive',
  'start-cycle: a new cycle replaces a cycle with a scheduled plan',
  'start-cycle: a plan is scheduled',
  'start-cycle: a scheduled plan would exceed the maximum balance',
  'start-cycle: a scheduled plan replaces an earlier scheduled plan',
  'start-cycle: accepted',
  'start-cycle: no cycle is active, so the plan begins immediately',
  'start-cycle: no plan can be scheduled for the end of a cycle that never renews',
  'stop-cycle: CycleNotFound',
  'stop-cycle: a scheduled plan is canceled',
  'stop-cycle: accepted',
  'stop-cycle: a second stop returns the stopped cycle',
  'stop-cycle: a superseded cycle is not found',
  'subtract: InsufficientFunds',
  'subtract: accepted',
  'the clock is earlier than the time of the ledger',
  'the renewal job stores due events',
] as const;

export type Sight = (typeof SIGHTS)[number];

export const sights = new Map<Sight, number>(SIGHTS.map((sight) => [sight, 0]));

export function saw(sight: Sight): void {
  sights.set(sight, (sights.get(sight) ?? 0) + 1);
}

export interface Before {
  readonly now: number;
  readonly balance: ModelBalance;
  readonly lapsesAt: number | null;
}

export function sawOutcome(command: ModelCommand, outcome: ModelOutcome, before: Before, after: ModelBalance): void {
  const { kind } = command;
  saw(`${kind}: ${outcome.refused ?? 'accepted'}` as Sight);
  const { now, balance, lapsesAt } = before;
  if (kind === 'add' && outcome.refused === 'BalanceTooLarge') {
    const isKept = outcome.available < MOST - balance.balance - balance.held;
    if (isKept) saw('add: BalanceTooLarge because of a renewal');
    const active = activeIn(balance);
    if (isKept && active?.next != null) saw('add: BalanceTooLarge because of a scheduled plan');
    else if (isKept && active !== undefined && active.rolloverMax > 0)
      saw('add: BalanceTooLarge because of credits that may roll over');
  }
  if (kind === 'start-cycle') sawStart(command.onActive, outcome, balance);
  if (kind === 'stop-cycle' && outcome.refused === null && activeIn(balance)?.next != null)
    saw('stop-cycle: a scheduled plan is canceled');
  if (kind === 'stop-cycle' && canceledIn(balance) > 0) {
    if (outcome.refused !== null) saw('stop-cycle: a superseded cycle is not found');
    else if (canceledIn(after) === canceledIn(balance)) saw('stop-cycle: a second stop returns the stopped cycle');
  }
  if (kind === 'capture' && outcome.refused === 'HoldNotFound' && lapsesAt === now)
    saw('capture: HoldNotFound at the instant at which the hold lapses');
  if (outcome.refused !== null) return;
  if (kind === 'add' && command.validityMonths !== null) saw('add: accepted with a validity in months');
  const { hold, refund } = outcome;
  if (kind === 'capture' && lapsesAt === now + 1) saw('capture: accepted a millisecond before the hold lapses');
  if (hold?.status === 'captured') {
    if (hold.captured > hold.amount) saw('capture: more than was held');
    if (hold.captured < hold.amount) saw('capture: less than was held');
    if (hold.expired > 0) saw('capture: less than was held, after a cycle has ended');
  }
  if (hold?.status === 'released' && hold.expired > 0) saw('release: credits have expired');
  if (refund === undefined) return;
  if (refund.expired > 0) saw('refund: credits have expired');
  if (refund.restored === 0) saw('refund: all credits have expired');
  if (after.entries.length > balance.entries.length) saw('refund: expired credits return as a new cycle');
}

function sawStart(onActive: string, outcome: ModelOutcome, before: ModelBalance): void {
  const active = activeIn(before);
  if (onActive !== 'at_period_end') {
    if (outcome.refused === null && active?.next != null)
      saw('start-cycle: a new cycle replaces a cycle with a scheduled plan');
  } else if (outcome.refused === 'CycleAlreadyActive')
    saw('start-cycle: no plan can be scheduled for the end of a cycle that never renews');
  else if (outcome.refused !== null) {
    if (active !== undefined) saw('start-cycle: a scheduled plan would exceed the maximum balance');
  } else if (active === undefined) saw('start-cycle: no cycle is active, so the plan begins immediately');
  else
    saw(
      `start-cycle: ${active.next === null ? 'a plan is scheduled' : 'a scheduled plan replaces an earlier scheduled plan'}`,
    );
}

export function* sightsOfTurn(turn: Turned, previous: Turned | undefined): Generator<Sight> {
  const { isChange, ended, begun, missed, held } = turn;
  yield* sightsOfMonths(begun);
  if (isChange) {
    yield 'a plan begins at the end of the period';
    return;
  }
  if (missed > 0 && previous?.isChange) yield 'a renewal follows a change of plan without a request in between';
  const { rolloverMax } = begun.plan;
  if (rolloverMax === 0) return;
  const rolled = begun.amount - begun.plan.amount;
  if (ended.left === 0) yield 'a renewal rolls over nothing, because all credits are spent or held';
  else if (ended.left < rolloverMax) yield 'a renewal rolls over all unused credits';
  else if (ended.left === rolloverMax) yield 'a renewal rolls over exactly the maximum';
  else yield 'a renewal rolls over the maximum, and the other unused credits expire';
  if (rolled === 0) return;
  if (missed > 1) yield 'a renewal rolls over credits after several missed periods';
  if (held > 0) yield 'a renewal rolls over the unused credits, but not those that are held';
  if (ended.amount > ended.plan.amount)
    yield 'a renewal rolls over credits of a period into which credits had rolled over';
}

function* sightsOfMonths({ plan, createdAt, start, end }: Turned['begun']): Generator<Sight> {
  if (plan.validityMonths === null) return;
  const [created, first, last] = [dateOf(createdAt), dateOf(start), dateOf(end)];
  if (first.month === 2 && first.day === 29) yield 'a period of months begins on 29 February';
  if (last.day < created.day)
    yield 'a period of months ends on an earlier day of the month, because that month is shorter';
  else if (first.day < created.day)
    yield 'a period of months that began in a shorter month ends on the original day of the month again';
}

function activeIn({ entries }: ModelBalance) {
  return entries.find(({ type, status }) => type === 'recurring' && status === 'active');
}

function canceledIn({ entries }: ModelBalance): number {
  return entries.filter(({ status }) => status === 'canceled').length;
}
