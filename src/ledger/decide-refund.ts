// Decides the outcome of refunds, which return credits of a subtraction or a capture to the cycles that they came from.

import type { Amount } from './amount.ts';
import type { Refund } from './command.ts';
import { accepted, type Decision, entryOf, type Moment, opened, refused } from './decision.ts';
import { endOf } from './plan.ts';
import { type PeriodKey, type Posting, postingOn } from './posting.ts';
import { refuseTooLarge } from './room.ts';
import type { EndUserState } from './state.ts';

export interface Referenced {
  /** The postings of the refunded transaction, in the order in which they were written. */
  readonly postings: readonly Posting[];
  /** The postings of all earlier refunds of the transaction, oldest first. */
  readonly refunds: readonly Posting[];
}

interface Refundable extends PeriodKey {
  readonly amount: Amount;
}

/** How many credits of a transaction can still be refunded; 0 unless the transaction is a subtraction or a capture. */
export function refundableOf(referenced: Referenced): Amount {
  return refundablePeriods(referenced).reduce((sum, { amount }) => sum + amount, 0);
}

/** How many credits can still be refunded to the period of `posting`. */
export function refundableIn(referenced: Referenced, { cycleId, period }: Posting): Amount {
  const same = refundablePeriods(referenced).find((each) => each.cycleId === cycleId && each.period === period);
  return same?.amount ?? 0;
}

/**
 * The periods from which the transaction spent credits, in reverse order of its postings, each with the number of
 * credits that can still be refunded to that period.
 */
function refundablePeriods({ postings, refunds }: Referenced): readonly Refundable[] {
  const refunded = new Map<string, Amount>();
  // `refunds` can include postings that opened new cycles. These postings have no effect here, because the refunded
  // transaction spent nothing from the new cycles.
  for (const { cycleId, period, amount } of refunds) {
    const name = `${cycleId}/${period}`;
    refunded.set(name, (refunded.get(name) ?? 0) + amount);
  }
  return postings
    .filter(({ kind, amount }) => (kind === 'subtract' || kind === 'capture') && amount < 0)
    .map(({ cycleId, period, expiresAt, amount }) => ({
      cycleId,
      period,
      expiresAt,
      amount: -amount - (refunded.get(`${cycleId}/${period}`) ?? 0),
    }))
    .reverse();
}

/** @param referenced the transaction to refund; null if the end user has no such transaction */
export function refund(state: EndUserState, command: Refund, moment: Moment, referenced: Referenced | null): Decision {
  const kind = referenced?.postings[0]?.kind;
  if (referenced === null || kind === undefined) return refused({ refused: 'TransactionNotFound' });
  if (kind !== 'subtract' && kind !== 'capture') return refused({ refused: 'NotRefundable' });
  const refundable = refundableOf(referenced);
  const wanted = command.amount ?? refundable;
  if (refundable === 0 || wanted > refundable)
    return refused({ refused: 'RefundTooLarge', requested: command.amount, refundable });

  const { now } = moment;
  const given: Refundable[] = [];
  let left = wanted;
  for (const period of refundablePeriods(referenced)) {
    const amount = Math.min(left, period.amount);
    if (amount > 0) given.push({ ...period, amount });
    left -= amount;
  }
  const expired = sumOf(given.filter(({ expiresAt }) => expiresAt <= now));
  const validity = { validityDays: command.validityDays, validityMonths: null };
  const renewed = validity.validityDays === null ? 0 : expired;
  const restored = wanted - expired + renewed;
  const end = Math.max(...given.map(({ expiresAt }) => expiresAt), renewed === 0 ? 0 : endOf(now, validity));
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
