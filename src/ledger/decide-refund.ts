// Decides the outcome of refunds, which return credits of a subtraction or a capture to the cycles that they came from.

import type { Amount } from './amount.ts';
import type { Refund } from './command.ts';
import { accepted, type Decision, entryOf, type Moment, opened, refused } from './decision.ts';
import { endOf } from './plan.ts';
import { type PeriodKey, type Posting, periodName, postingOn } from './posting.ts';
import { refuseTooLarge } from './room.ts';
import type { EndUserState } from './state.ts';

export interface Referenced {
  /** The postings of the refunded transaction, in the order in which they were written. */
  readonly postings: readonly Posting[];
  /** The postings of all earlier refunds of the transaction, oldest first. */
  readonly refunds: readonly Posting[];
}

export interface Refundable extends PeriodKey {
  readonly amount: Amount;
}

/** How many credits of a transaction can still be refunded; 0 unless the transaction is a subtraction or a capture. */
export function refundableOf(referenced: Referenced): Amount {
  return sumOf(refundableDraws(referenced));
}

/** The periods from which the transaction spent credits, by `periodName`, with the credits that can still be refunded. */
export function refundableByPeriod(referenced: Referenced): ReadonlyMap<string, Refundable> {
  return byPeriod(refundableDraws(referenced));
}

function byPeriod(draws: readonly Refundable[]): ReadonlyMap<string, Refundable> {
  const periods = new Map<string, Refundable>();
  for (const each of draws) {
    const name = periodName(each);
    periods.set(name, { ...each, amount: (periods.get(name)?.amount ?? 0) + each.amount });
  }
  return periods;
}

/** The draws of the transaction, latest first, each with the number of credits that can still be refunded. */
function refundableDraws({ postings, refunds }: Referenced): readonly Refundable[] {
  const refunded = new Map<string, Amount>();
  // `refunds` can include postings that opened new cycles. These postings have no effect here, because the refunded
  // transaction spent nothing from the new cycles.
  for (const each of refunds) refunded.set(periodName(each), (refunded.get(periodName(each)) ?? 0) + each.amount);
  return drawsOf(postings)
    .toReversed()
    .map((each) => {
      const left = refunded.get(periodName(each)) ?? 0;
      const back = Math.min(left, each.amount);
      refunded.set(periodName(each), left - back);
      return { ...each, amount: each.amount - back };
    });
}

/**
 * The draws of a transaction, earliest first. A capture spends the held credits of all its postings, and then draws the
 * rest from the balance. The posting of a period contains both.
 */
function drawsOf(postings: readonly Posting[]): readonly Refundable[] {
  const spending = postings.filter(({ kind, amount }) => (kind === 'subtract' || kind === 'capture') && amount < 0);
  const draws = (amountOf: (posting: Posting) => Amount) =>
    spending.map((each) => ({
      cycleId: each.cycleId,
      period: each.period,
      expiresAt: each.expiresAt,
      amount: amountOf(each),
    }));
  const heldIn = ({ amount, held }: Posting) => Math.min(-amount, -held);
  return [...draws(heldIn), ...draws((each) => -each.amount - heldIn(each))].filter(({ amount }) => amount > 0);
}

/** @param referenced the transaction to refund; null or without postings if the end user has no such transaction */
export function refund(state: EndUserState, command: Refund, moment: Moment, referenced: Referenced | null): Decision {
  const kind = referenced?.postings[0]?.kind;
  if (referenced === null || kind === undefined) return refused({ refused: 'TransactionNotFound' });
  if (kind !== 'subtract' && kind !== 'capture') return refused({ refused: 'NotRefundable' });
  const refundableNow = refundableDraws(referenced);
  const refundable = sumOf(refundableNow);
  const wanted = command.amount ?? refundable;
  if (refundable === 0 || wanted > refundable)
    return refused({ refused: 'RefundTooLarge', requested: command.amount, refundable });

  const { now } = moment;
  const draws: Refundable[] = [];
  let left = wanted;
  for (const each of refundableNow) {
    const amount = Math.min(left, each.amount);
    if (amount > 0) draws.push({ ...each, amount });
    left -= amount;
  }
  const given = [...byPeriod(draws).values()];
  const expired = sumOf(given.filter(({ expiresAt }) => expiresAt <= now));
  const validity = { validityDays: command.validityDays, validityMonths: null };
  const renewed = validity.validityDays === null ? 0 : expired;
  const restored = wanted - expired + renewed;
  // Not `Math.max(...given)`: a call with as many arguments as a refund can have periods would overflow the stack.
  const end = given.reduce(
    (latest, { expiresAt }) => Math.max(latest, expiresAt),
    renewed === 0 ? 0 : endOf(now, validity),
  );
  const refusal = refuseTooLarge(state, { amount: restored, end }, now);
  if (refusal) return refused(refusal);

  const entry = { ...entryOf(command, moment), reference: command.transactionId };
  const postings = given.map((period) => postingOn(period, { amount: period.amount, held: 0 }, entry));
  if (renewed > 0) postings.push(opened('one-time', { amount: renewed, rolloverMax: 0, ...validity }, entry).opening);
  return accepted(entry.transactionId, postings, { refund: { restored, expired: expired - renewed } });
}

function sumOf(periods: readonly Refundable[]): Amount {
  return periods.reduce((sum, { amount }) => sum + amount, 0);
}
