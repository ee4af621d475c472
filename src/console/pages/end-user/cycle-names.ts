// Names for cycles and descriptions of plans.

import { html } from 'ghtml';
import type { Plan, Validity } from '../../../ledger/plan.ts';
import type { CycleTerms } from '../../../ledger/posting.ts';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import { creditsText, day, momentUtcText, numberText, rolloverLimitText } from '../../figures.ts';

/** Both 30 and 31 days are called `Monthly`: some products sell 30-day months, and others sell 31-day months. */
const DAY_INTERVAL_NAMES: Readonly<Record<number, string>> = {
  1: 'Daily',
  7: 'Weekly',
  14: 'Two-week',
  30: 'Monthly',
  31: 'Monthly',
  90: 'Quarterly',
  365: 'Yearly',
  366: 'Yearly',
};

const MONTH_INTERVAL_NAMES: Readonly<Record<number, string>> = { 1: 'Monthly', 3: 'Quarterly', 12: 'Yearly' };

function intervalName({ validityDays, validityMonths }: Validity): string {
  return validityDays === null
    ? (MONTH_INTERVAL_NAMES[validityMonths as number] ?? `${validityMonths}-month`)
    : (DAY_INTERVAL_NAMES[validityDays] ?? `${numberText(validityDays)}-day`);
}

/** Describes a plan: `1,000 credits every month; up to 500 unused credits can roll over`. */
export function planSummaryText(plan: Plan): string {
  const { rolloverMax } = plan;
  const rollover = rolloverMax === 0 ? '' : `; ${rolloverLimitText(rolloverMax)} can roll over`;
  return `${creditsEveryText(plan)}${rollover}`;
}

/** Describes a plan without its rollover: `1,000 credits every month`. */
export function creditsEveryText(plan: Plan): string {
  return `${creditsText(plan.amount)} ${intervalText(plan)}`;
}

/** How often a cycle renews: `every month`, `every 31 days`. */
function intervalText({ validityDays, validityMonths }: Validity): string {
  const [count, unit] = validityMonths === null ? [validityDays as number, 'day'] : [validityMonths, 'month'];
  return count === 1 ? `every ${unit}` : `every ${numberText(count)} ${unit}s`;
}

/** Longer cycle names are allowed to wrap. */
const LINE_CHARACTERS_MAX = 40;

/** Returns a name such as `Added 100` or `Monthly cycle of 1,000, period 2`. */
function cycleNameText({ type, plan }: CycleTerms, period: number): string {
  const { amount } = plan;
  if (type === 'one-time') return `Added ${numberText(amount)}`;
  const interval = intervalName(plan);
  return `${interval} cycle of ${numberText(amount)}, period ${numberText(period)}`;
}

/** @param opening the terms of the cycle; if undefined, the name contains only the day on which the cycle started */
export function cycleName(id: TransactionId, period: number, opening: CycleTerms | undefined): string {
  const since = instantOf(id);
  const text = opening === undefined ? '' : cycleNameText(opening, period);
  const name = opening === undefined ? html`Cycle since !${day(since)}` : html`${text}`;
  return html`<span class="cycle!${text.length > LINE_CHARACTERS_MAX ? ' long' : ''}" title="Since ${momentUtcText(since)}, ${id}">!${name}</span>`;
}
