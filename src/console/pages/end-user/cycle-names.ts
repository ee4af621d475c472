// Names a cycle by the grant that opened it, instead of by an ID or a time.

import { html } from 'ghtml';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import type { Opening } from '../../../store/transaction-history.ts';
import { dayText, numberText } from '../../figures.ts';

/** Names for common period lengths in days. Products sell months of 30 or 31 days. */
const RHYTHMS: Readonly<Record<number, string>> = {
  1: 'Daily',
  7: 'Weekly',
  14: 'Two-week',
  30: 'Monthly',
  31: 'Monthly',
  90: 'Quarterly',
  365: 'Yearly',
  366: 'Yearly',
};

/** A longer name may wrap. */
const LINE_CHARACTERS_MAX = 40;

/** Returns a name such as `Added 100` or `Monthly cycle of 1,000, period 3`. @param period counted from 0 */
export function cycleNameText({ type, amount, validityDays }: Opening, period: number): string {
  if (type === 'one-time') return `Added ${numberText(amount)}`;
  const rhythm = RHYTHMS[validityDays] ?? `${numberText(validityDays)}-day`;
  return `${rhythm} cycle of ${numberText(amount)}, period ${numberText(period + 1)}`;
}

/** @param opening undefined if it was not looked up; then the cycle is named by the day on which it was opened */
export function cycleName(id: TransactionId, period: number, opening: Opening | undefined): string {
  const since = dayText(instantOf(id));
  const name = opening === undefined ? `Cycle since ${since}` : cycleNameText(opening, period);
  return html`<span class="cycle!${name.length > LINE_CHARACTERS_MAX ? ' long' : ''}" title="Since ${since}, ${id}">${name}</span>`;
}
