// The table of the current cycles of an end user.

import { html } from 'ghtml';
import { type Cycle, renews, spendable } from '../../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../../ledger/instant.ts';
import { instantOf } from '../../../ledger/transaction-id.ts';
import { round } from '../../charts/plot.ts';
import { day, durationText, endTime, numberText, wrappableNumber } from '../../figures.ts';
import { table } from '../lists.ts';
import { cycleName } from './cycle-names.ts';

const CYCLES_SHOWN_MAX = 200;
/** A longer list of cycles scrolls within its card. */
const CYCLES_WITHOUT_SCROLLING_MAX = 12;

const BAR_LENGTH = 120;
/** The minimum length of a bar that is not empty, so that even a small share is visible. */
const BAR_LENGTH_MIN = 2;

/** @param cycles the cycles that have not ended, in the order in which they are spent */
export function cyclesSection(cycles: readonly Cycle[], now: Instant): string {
  if (cycles.length === 0) {
    return `<section class="card">
<h2>Cycles</h2>
<p class="muted">No current cycles. Add credits or start a cycle.</p>
</section>`;
  }
  const shown = shownOf(cycles);
  const count =
    shown.length < cycles.length ? ` Showing ${numberText(shown.length)} of ${numberText(cycles.length)}.` : '';
  const rows = shown.map((cycle) => cycleRow(cycle, now));
  const columns = [['Cycle'], ['Remaining'], ['Time left'], ['At the end']] as const;
  const isTall = shown.length > CYCLES_WITHOUT_SCROLLING_MAX;
  return html`<section class="card">
<h2>Cycles</h2>
<p class="muted small">The oldest credits are spent first.<span class="utc"> Times are UTC.</span>${count}</p>
!${table({ label: 'Cycles', classes: 'cycles', columns, rows, isTall })}
</section>`;
}

/**
 * Returns all cycles if there are at most `CYCLES_SHOWN_MAX`. Otherwise, returns the first `CYCLES_SHOWN_MAX` of the
 * cycles that have credits left or will renew.
 */
function shownOf(cycles: readonly Cycle[]): readonly Cycle[] {
  if (cycles.length <= CYCLES_SHOWN_MAX) return cycles;
  return cycles.filter((cycle) => cycle.remaining > 0 || renews(cycle)).slice(0, CYCLES_SHOWN_MAX);
}

function cycleRow(cycle: Cycle, now: Instant): string {
  const left = spendable(cycle);
  return html`<tr role="row">
<td role="cell" data-label="Cycle"><span class="strong">!${cycleName(cycle.id, cycle.period, cycle)}</span><br><span class="muted small">!${typeText(cycle)}</span></td>
<td role="cell" data-label="Remaining"><span>!${wrappableNumber(left)} of !${wrappableNumber(cycle.amount)}</span>!${bar(left / cycle.amount, 'bar-credits')}!${cycle.held === 0 ? '' : html`<span class="muted small">!${wrappableNumber(cycle.held)} held</span>`}</td>
<td role="cell" data-label="Time left" class="when"><span>${cycle.end === INSTANT_MAX ? 'Never ends' : durationText(cycle.end - now)}</span>!${bar((cycle.end - now) / (cycle.end - cycle.start), 'bar-time')}</td>
<td role="cell" data-label="At the end">!${endOfCycle(cycle)}</td>
</tr>`;
}

/** A bar repeats the text of its table cell, so it is hidden from screen readers. */
function bar(share: number, mark: string): string {
  const bounded = Math.min(Math.max(share, 0), 1);
  const length = bounded === 0 ? 0 : Math.max(round(bounded * BAR_LENGTH), BAR_LENGTH_MIN);
  return html`<svg class="meter" viewBox="0 0 ${BAR_LENGTH} 6" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-track" width="${BAR_LENGTH}" height="6"/><rect class="${mark}" width="${length}" height="6"/></svg>`;
}

function typeText({ id, type, status, start }: Cycle): string {
  if (type === 'one-time') return html`One-time, since !${day(instantOf(id))}`;
  if (status !== 'active') return 'Recurring, stopped';
  return html`Recurring, current period started !${day(start)}`;
}

function endOfCycle(cycle: Cycle): string {
  if (cycle.end === INSTANT_MAX) return '';
  return html`!${nextPeriod(cycle)} <br><span class="muted small">!${endTime(cycle.end)}</span>`;
}

function nextPeriod(cycle: Cycle): string {
  const { plan, next } = cycle;
  if (!renews(cycle)) return 'Expires';
  if (next !== null) return html`Changes to !${wrappableNumber(next.plan.amount)}`;
  const unused = html` <br><span class="muted small">plus up to !${wrappableNumber(plan.rolloverMax)} unused</span>`;
  return html`Renews with !${wrappableNumber(plan.amount)}!${plan.rolloverMax === 0 ? '' : unused}`;
}
