// Cases that must occur in the random histories.

import { MOST } from './model-end-user.ts';
import type { ModelBalance, ModelCommand, ModelOutcome } from './model-types.ts';

const SIGHTS = [
  'a balance is read before its renewal is stored',
  'a balance is read before a lapse is stored',
  'a past balance is read',
  'a past balance equals the one that was read at that instant',
  'a future balance is read',
  'a COMMIT fails',
  'a history is filtered',
  'a key is used with another request',
  'a lapse is shown in the history before it is stored',
  'an outcome is replayed',
  'a batch postpones an end user with too many due renewals',
  'a renewal is listed before it is stored',
  'add: BalanceTooLarge',
  'add: BalanceTooLarge because of a renewal',
  'add: accepted',
  'capture: HoldNotFound',
  'capture: HoldNotFound at the instant at which it lapses',
  'capture: InsufficientFunds',
  'capture: accepted',
  'capture: accepted the millisecond before it lapses',
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
  'release: HoldNotFound',
  'release: accepted',
  'release: credits have expired',
  'start-cycle: BalanceTooLarge',
  'start-cycle: CycleAlreadyActive',
  'start-cycle: accepted',
  'stop-cycle: CycleNotFound',
  'stop-cycle: accepted',
  'stop-cycle: a stopped cycle is found again',
  'stop-cycle: a superseded cycle is not found',
  'subtract: InsufficientFunds',
  'subtract: accepted',
  'the clock is behind the ledger',
  'the renewal job settles',
] as const;

export type Sight = (typeof SIGHTS)[number];

export const sights = new Map<Sight, number>(SIGHTS.map((sight) => [sight, 0]));

export function saw(sight: Sight): void {
  sights.set(sight, (sights.get(sight) ?? 0) + 1);
}

/** The state of the model right before a command. */
export interface Before {
  readonly now: number;
  readonly balance: ModelBalance;
  /** The instant at which the hold in the command lapses or lapsed; null if the command has no hold. */
  readonly lapsesAt: number | null;
}

/** Counts the cases of one outcome. */
export function sawOutcome(command: ModelCommand, outcome: ModelOutcome, before: Before, after: ModelBalance): void {
  const { kind } = command;
  saw(`${kind}: ${outcome.refused ?? 'accepted'}` as Sight);
  const { now, balance, lapsesAt } = before;
  if (kind === 'add' && outcome.refused === 'BalanceTooLarge') {
    const isKept = outcome.available < MOST - balance.balance - balance.held;
    if (isKept) saw('add: BalanceTooLarge because of a renewal');
  }
  if (kind === 'stop-cycle' && canceledIn(balance) > 0) {
    if (outcome.refused !== null) saw('stop-cycle: a superseded cycle is not found');
    else if (canceledIn(after) === canceledIn(balance)) saw('stop-cycle: a stopped cycle is found again');
  }
  if (kind === 'capture' && outcome.refused === 'HoldNotFound' && lapsesAt === now)
    saw('capture: HoldNotFound at the instant at which it lapses');
  if (outcome.refused !== null) return;
  const { hold, refund } = outcome;
  if (kind === 'capture' && lapsesAt === now + 1) saw('capture: accepted the millisecond before it lapses');
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

function canceledIn({ entries }: ModelBalance): number {
  return entries.filter(({ status }) => status === 'canceled').length;
}
