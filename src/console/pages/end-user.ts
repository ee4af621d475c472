// The page of an end user. It answers "why is my balance 12?": the balance, the cycles it consists of, how it changed, and
// every transaction with who made it.

import { html } from 'ghtml';
import type { Amount } from '../../ledger/amount.ts';
import { type Cycle, isActiveRecurring, renews } from '../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { instantOf, type TransactionId } from '../../ledger/transaction-id.ts';
import type { HistoryTransaction } from '../../store/console-store.ts';
import { type BalanceOverTime, balanceChart } from '../charts/balance-chart.ts';
import { round } from '../charts/plot.ts';
import {
  dayText,
  durationText,
  endTime,
  largeNumber,
  moment,
  momentText,
  momentUtc,
  numberText,
  signedText,
  wrappableNumber,
} from '../figures.ts';
import { type PageContext, page } from '../layout.ts';
import { type AdjustForms, adjustForms } from './adjust-forms.ts';
import { type Activity, actorLabel, amountText, kindBadge, pager, table } from './lists.ts';

const CYCLES_SHOWN_MAX = 200;
/** A longer list of cycles scrolls within its card. */
const CYCLES_WITHOUT_SCROLLING_MAX = 12;

const BAR_LENGTH = 120;
/** Of a share above 0, so that it can be seen. */
const BAR_LENGTH_MIN = 2;

export type HistoryEntry = Activity & Pick<HistoryTransaction, 'expiresAt' | 'postings'>;

export interface EndUserView {
  readonly endUser: string;
  readonly now: Instant;
  readonly balance: Amount;
  /** Cycles that have not ended, in the order in which they are spent. */
  readonly cycles: readonly Cycle[];
  /** False on the pages of older transactions. */
  readonly isFirstPage: boolean;
  /** Null on the pages of older transactions, and when there are too many cycles to draw. */
  readonly balanceOverTime: BalanceOverTime | null;
  /** Whether the chart begins later than usual, since there was too much activity to read. */
  readonly isPastCut: boolean;
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  /** The cursor of the next page of older transactions; null on the last. */
  readonly older: string | null;
  readonly forms: AdjustForms;
}

export function endUserPage(view: EndUserView, context: PageContext): string {
  const { endUser, now, balance, cycles, forms } = view;
  const activeCycle = cycles.find(isActiveRecurring) ?? null;
  const body = html`<p class="crumb"><a href="/console/end-users">Back to end users</a></p>
<div class="heading-row"><h1>End user <span class="mono id" id="end-user-id">${endUser}</span></h1>
<button class="button secondary small" type="button" data-copy="end-user-id" hidden>Copy</button>
<span class="muted small" id="end-user-id-copied" role="status"></span></div>
<div class="columns">
<div class="lead">
<section class="card balance" aria-label="Current balance">
<p class="label">Current balance</p>
<p class="value">!${largeNumber(balance)} <span class="unit">${balance === 1 ? 'credit' : 'credits'}</span></p>
<p class="muted small">As of !${momentUtc(now)}</p>
</section>
!${adjustForms({ endUser, activeCycle, forms })}
</div>
<div class="rest">
!${cyclesSection(view)}
!${chartSection(view)}
</div>
</div>
!${historySection(view)}`;
  return page({ title: `End user ${endUser}`, ...context, current: 'end-users', body });
}

function cyclesSection({ cycles, now }: EndUserView): string {
  if (cycles.length === 0) {
    return `<section class="card">
<h2>Cycles</h2>
<p class="muted">No active credits. Add credits or start a cycle.</p>
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
<p class="muted small">Spent oldest first. Times are UTC.${count}</p>
!${table({ label: 'Cycles', classes: 'cycles', columns, rows, isTall })}
</section>`;
}

/** Of very many cycles, those that have credits or renew. */
function shownOf(cycles: readonly Cycle[]): readonly Cycle[] {
  if (cycles.length <= CYCLES_SHOWN_MAX) return cycles;
  return cycles.filter((cycle) => cycle.remaining > 0 || renews(cycle)).slice(0, CYCLES_SHOWN_MAX);
}

function cycleRow(cycle: Cycle, now: Instant): string {
  return html`<tr role="row">
<td role="cell" data-label="Cycle"><span class="strong">!${cycleName(cycle)}</span><br><span class="muted small">${typeText(cycle)}</span></td>
<td role="cell" data-label="Remaining"><span>!${wrappableNumber(cycle.remaining)} of !${wrappableNumber(cycle.amount)}</span>!${bar(cycle.remaining / cycle.amount, 'bar-credits')}</td>
<td role="cell" data-label="Time left" class="when"><span>${cycle.end === INSTANT_MAX ? 'Never ends' : durationText(cycle.end - now)}</span>!${bar((cycle.end - now) / (cycle.end - cycle.start), 'bar-time')}</td>
<td role="cell" data-label="At the end">!${endOfCycle(cycle)}</td>
</tr>`;
}

/** The table gives the same as text, so the bar is hidden from screen readers. */
function bar(share: number, mark: string): string {
  const bounded = Math.min(Math.max(share, 0), 1);
  const length = bounded === 0 ? 0 : Math.max(round(bounded * BAR_LENGTH), BAR_LENGTH_MIN);
  return html`<svg class="meter" viewBox="0 0 ${BAR_LENGTH} 6" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-track" width="${BAR_LENGTH}" height="6"/><rect class="${mark}" width="${length}" height="6"/></svg>`;
}

function typeText({ type, status, period, start }: Cycle): string {
  if (type === 'one-time') return 'one-time';
  if (status !== 'active') return 'recurring, stopped';
  return period === 0 ? 'recurring' : `recurring, period since ${dayText(start)}`;
}

function endOfCycle(cycle: Cycle): string {
  if (cycle.end === INSTANT_MAX) return '';
  const text = renews(cycle) ? `Renews to ${numberText(cycle.amount)}` : 'Expires';
  return html`${text} <br><span class="muted small">!${endTime(cycle.end)}</span>`;
}

/** Cycles have no names: one is shown by the time of the transaction that created it, and by the number of its period. */
function cycleName({ id, period }: { readonly id: TransactionId; readonly period: number }): string {
  const createdAt = momentText(instantOf(id));
  return html`<span class="cycle" title="${id}">${createdAt}${period === 0 ? '' : ` · period ${period + 1}`}</span>`;
}

function chartSection({ isFirstPage, balanceOverTime, isPastCut, cycles, history }: EndUserView): string {
  if (!isFirstPage || (cycles.length === 0 && history.length === 0)) return '';
  if (balanceOverTime === null)
    return '<section class="card"><h2>Balance over time</h2><p class="muted">Too many cycles to draw a chart.</p></section>';
  const { past, now } = balanceOverTime;
  return html`<section class="card">
<h2>Balance over time</h2>
!${isPastCut ? html`<p class="muted small">Showing activity since ${dayText(past[0]?.at ?? now)}.</p>` : ''}
!${balanceChart(balanceOverTime)}
</section>`;
}

function historySection({ endUser, history, older, isFirstPage }: EndUserView): string {
  const path = `/console/end-users/${endUser}`;
  return html`<section class="card" id="transactions">
<h2>${isFirstPage ? 'Transactions' : 'Older transactions'}</h2>
!${history.length === 0 ? '<p class="muted">No transactions yet.</p>' : historyTable(history)}
!${pager([
    { label: 'Latest', path: isFirstPage ? null : path },
    {
      label: 'Older',
      path: older === null ? null : `${path}?from=${encodeURIComponent(older)}#transactions`,
      isNext: true,
    },
  ])}
</section>`;
}

function historyTable(history: readonly HistoryEntry[]): string {
  const rows = history.map(
    (entry) => html`<tr role="row">
<td role="cell" data-label="Time" class="when">!${moment(entry.createdAt)}</td>
<td role="cell" data-label="Type">!${kindBadge(entry.kind)}</td>
<td role="cell" data-label="Amount" class="number">${amountText(entry)}</td>
<td role="cell" data-label="Cycle">!${touchedCycles(entry)}!${entry.kind === 'stop-cycle' ? '' : html`<span class="expires muted small">Expires !${endTime(entry.expiresAt)}</span>`}</td>
<td role="cell" data-label="By" class="by"><span>!${actorLabel(entry.by)}</span>!${entry.note === null ? '' : html`<span class="note">“${entry.note}”</span>`}</td>
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Type'], ['Amount', 'number'], ['Cycle'], ['By and note']] as const;
  return table({ label: 'Transactions', classes: 'history', columns, rows });
}

/** The name of the cycle; of several, each with its amount. */
function touchedCycles({ postings }: HistoryEntry): string {
  const [only] = postings;
  if (only !== undefined && postings.length === 1) return cycleName({ id: only.cycleId, period: only.period });
  const items = postings.map(
    ({ cycleId: id, period, amount }) =>
      html`<li><span class="number">${signedText(amount)}</span> !${cycleName({ id, period })}</li>`,
  );
  return html`<ul class="draws">!${items}</ul>`;
}
