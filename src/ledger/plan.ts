// A plan: how many credits each period starts with, how long a period lasts, and how many unused credits roll over.
// Every cycle has a plan; a one-time cycle has only one period.

import { AMOUNT_MAX, type Amount, isAmount } from './amount.ts';
import { addMonths, DAY_MS, INSTANT_MAX, type Instant, VALIDITY_DAYS_MAX } from './instant.ts';
import { assertInvariant } from './invariant.ts';
import type { TransactionId } from './transaction-id.ts';

export const VALIDITY_MONTHS_MAX = 120;

/** The length of a period, in 24-hour days or in calendar months (UTC). Exactly one of the two fields is null. */
export interface Validity {
  readonly validityDays: number | null;
  readonly validityMonths: number | null;
}

export interface Plan extends Validity {
  /** The credits that each period starts with, not including those that roll over. */
  readonly amount: Amount;
  /** The maximum number of unused credits that roll over. */
  readonly rolloverMax: Amount;
}

/** A plan that begins at the end of the current period, in place of a renewal. */
export interface ScheduledPlan {
  /** The ID of the transaction that scheduled the plan. */
  readonly id: TransactionId;
  readonly plan: Plan;
}

/**
 * The instant at which `periods` consecutive periods from `start` have ended. Months are counted from `start`: monthly
 * periods from 31 May end on 30 June and on 31 July.
 */
export function endOf(start: Instant, { validityDays, validityMonths }: Validity, periods = 1): Instant {
  const end =
    validityMonths === null
      ? start + periods * (validityDays as number) * DAY_MS
      : addMonths(start, periods * validityMonths);
  return Math.min(end, INSTANT_MAX);
}

export const VALIDITY_RULE = 'a cycle is valid for a whole number of days or months';
export const PLAN_RULE = 'the credits of a plan plus the credits that can roll over are at most 2^53−1';

export function isValidity({ validityDays: days, validityMonths: months }: Validity): boolean {
  if (days === null) return isWhole(months, VALIDITY_MONTHS_MAX);
  return months === null && isWhole(days, VALIDITY_DAYS_MAX);
}

function isWhole(count: number | null, max: number): boolean {
  return Number.isSafeInteger(count) && (count as number) >= 1 && (count as number) <= max;
}

export function isInRange({ amount, rolloverMax }: Plan): boolean {
  return isAmount(amount) && (rolloverMax === 0 || isAmount(rolloverMax)) && amount <= AMOUNT_MAX - rolloverMax;
}

export function assertPlan(plan: Plan): void {
  assertInvariant(4, isValidity(plan), VALIDITY_RULE);
  assertInvariant(1, isInRange(plan), PLAN_RULE);
}

export function isSamePlan(a: Plan, b: Plan): boolean {
  return a === b || planText(a) === planText(b);
}

/**
 * The text of a plan in both stores and in the hash chain, such as `100/31d`, or `100/1m/50` if up to 50 credits roll
 * over.
 */
export function planText({ amount, validityDays, validityMonths, rolloverMax }: Plan): string {
  const validity = validityMonths === null ? `${validityDays}d` : `${validityMonths}m`;
  return rolloverMax === 0 ? `${amount}/${validity}` : `${amount}/${validity}/${rolloverMax}`;
}

/** A cache of parsed plans: an account has few plans, but many cycles with the same plan. */
const PARSED = new Map<string, Plan>();
const PARSED_MAX = 1_000;

const PLAN_TEXT = /^([1-9]\d*)\/([1-9]\d*)([dm])(?:\/([1-9]\d*))?$/;

/** The result of `planOfText` for malformed text: a plan that fails both `isValidity` and `isInRange`. */
const UNREADABLE: Plan = { amount: Number.NaN, validityDays: Number.NaN, validityMonths: null, rolloverMax: 0 };

/** The inverse of `planText`. Does not check whether the plan is valid. Returns `UNREADABLE` for malformed text. */
export function planOfText(text: string): Plan {
  const known = PARSED.get(text);
  if (known !== undefined) return known;
  const parts = PLAN_TEXT.exec(text);
  if (parts === null) return UNREADABLE;
  const [, amount, count, unit, rolloverMax = 0] = parts;
  const plan: Plan = {
    amount: Number(amount),
    validityDays: unit === 'd' ? Number(count) : null,
    validityMonths: unit === 'm' ? Number(count) : null,
    rolloverMax: Number(rolloverMax),
  };
  if (PARSED.size >= PARSED_MAX) PARSED.clear();
  PARSED.set(text, plan);
  return plan;
}

/** @returns null if no plan is scheduled */
export function scheduledText(scheduled: ScheduledPlan | null): string | null {
  return scheduled === null ? null : `${scheduled.id}/${planText(scheduled.plan)}`;
}

/** The inverse of `scheduledText`. */
export function scheduledOfText(text: string | null): ScheduledPlan | null {
  if (text === null) return null;
  const slash = text.indexOf('/');
  return { id: text.slice(0, slash), plan: planOfText(text.slice(slash + 1)) };
}
