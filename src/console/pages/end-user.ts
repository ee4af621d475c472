// The page of an end user. It answers "why is my balance 12?" with the balance, the cycles that make up the balance,
// its changes over time, and every transaction with its actor.

import { html } from 'ghtml';
import type { Amount } from '../../ledger/amount.ts';
import { type Cycle, isActiveRecurring, renews } from '../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { instantOf } from '../../ledger/transaction-id.ts';
import { type HistoryPage, type HistoryTransaction, NAMED_CYCLES_MAX } from '../../store/console-store.ts';
import { type BalanceOverTime, balanceChart } from '../charts/balance-chart.ts';
import { round } from '../charts/plot.ts';
import {
  day,
  dayText,
  durationText,
  endTime,
  largeNumber,
  moment,
  momentUtc,
  numberText,
  signedText,
  wrappableNumber,
} from '../figures.ts';
import { type PageContext, page } from '../layout.ts';
import { type AdjustForms, adjustForms } from './adjust-forms.ts';
import { cycleName } from './cycle-names.ts';
import { type FormState, field } from './form-field.ts';
import { type Activity, actorLabel, amountLabel, KINDS, kindBadge, kindLabel, pager, table } from './lists.ts';

const CYCLES_SHOWN_MAX = 200;
/** A longer list of cycles scrolls within its card. */
const CYCLES_WITHOUT_SCROLLING_MAX = 12;

const BAR_LENGTH = 120;
/** The minimum length of a bar for a share above 0, so that it is visible. */
const BAR_LENGTH_MIN = 2;

/** The filter of the transactions, as the user entered it. An empty field matches all transactions. */
export interface HistoryFilter {
  readonly kind: string;
  /** Days in UTC, such as `2026-11-20`. */
  readonly from: string;
  readonly to: string;
}

export type HistoryEntry = Activity & Pick<HistoryTransaction, 'expiresAt' | 'postings'>;

export interface EndUserView {
  readonly endUser: string;
  readonly now: Instant;
  readonly balance: Amount;
  /** Cycles that have not ended, in the order in which they are spent. */
  readonly cycles: readonly Cycle[];
  /** False on the pages of older transactions. */
  readonly isFirstPage: boolean;
  /** Null on the pages of older transactions, and if there are too many cycles to draw. */
  readonly balanceOverTime: BalanceOverTime | null;
  /** Whether the chart begins later than usual because there was too much activity to read. */
  readonly isPastCut: boolean;
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  /** The cursor of the next page of older transactions; null on the last page. */
  readonly older: string | null;
  /** The openings of the cycles in the history. */
  readonly openings: HistoryPage['openings'];
  readonly filter: HistoryFilter;
  readonly filterErrors: FormState['errors'];
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
<p class="muted small">Spent oldest first.<span class="utc"> Times are UTC.</span>${count}</p>
!${table({ label: 'Cycles', classes: 'cycles', columns, rows, isTall })}
</section>`;
}

/** Returns all cycles. If there are too many, returns the first cycles that have credits or renew. */
function shownOf(cycles: readonly Cycle[]): readonly Cycle[] {
  if (cycles.length <= CYCLES_SHOWN_MAX) return cycles;
  return cycles.filter((cycle) => cycle.remaining > 0 || renews(cycle)).slice(0, CYCLES_SHOWN_MAX);
}

function cycleRow(cycle: Cycle, now: Instant): string {
  return html`<tr role="row">
<td role="cell" data-label="Cycle"><span class="strong">!${cycleName(cycle.id, cycle.period, cycle)}</span><br><span class="muted small">!${typeText(cycle)}</span></td>
<td role="cell" data-label="Remaining"><span>!${wrappableNumber(cycle.remaining)} of !${wrappableNumber(cycle.amount)}</span>!${bar(cycle.remaining / cycle.amount, 'bar-credits')}</td>
<td role="cell" data-label="Time left" class="when"><span>${cycle.end === INSTANT_MAX ? 'Never ends' : durationText(cycle.end - now)}</span>!${bar((cycle.end - now) / (cycle.end - cycle.start), 'bar-time')}</td>
<td role="cell" data-label="At the end">!${endOfCycle(cycle)}</td>
</tr>`;
}

/** The table has the same information as text, so the bar is hidden from screen readers. */
function bar(share: number, mark: string): string {
  const bounded = Math.min(Math.max(share, 0), 1);
  const length = bounded === 0 ? 0 : Math.max(round(bounded * BAR_LENGTH), BAR_LENGTH_MIN);
  return html`<svg class="meter" viewBox="0 0 ${BAR_LENGTH} 6" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-track" width="${BAR_LENGTH}" height="6"/><rect class="${mark}" width="${length}" height="6"/></svg>`;
}

function typeText({ id, type, status, start }: Cycle): string {
  if (type === 'one-time') return html`One-time, since !${day(instantOf(id))}`;
  if (status !== 'active') return 'Recurring, stopped';
  return html`Recurring, current period since !${day(start)}`;
}

function endOfCycle(cycle: Cycle): string {
  if (cycle.end === INSTANT_MAX) return '';
  const text = renews(cycle) ? `Renews to ${numberText(cycle.amount)}` : 'Expires';
  return html`${text} <br><span class="muted small">!${endTime(cycle.end)}</span>`;
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

function historySection(view: EndUserView): string {
  const { endUser, history, older, isFirstPage, filter } = view;
  const path = `/console/end-users/${endUser}`;
  const isFiltered = filter.kind !== '' || filter.from !== '' || filter.to !== '';
  const none =
    older === null
      ? 'No transactions yet.'
      : 'No matching transactions so far. Older transactions may be on the next page.';
  return html`<section class="card" id="transactions">
<h2>${isFirstPage ? 'Transactions' : 'Older transactions'}</h2>
!${filterForm(path, view)}
!${history.length > 0 ? historyTable(view) : html`<p class="muted">${isFiltered && older === null ? 'No matching transactions.' : none}</p>`}
!${pager([
    { label: 'Latest', path: isFirstPage ? null : pathOf(path, filter) },
    { label: 'Older', path: older === null ? null : pathOf(path, filter, older), isNext: true },
    { label: 'Download CSV', path: history.length === 0 ? null : pathOf(`${path}/transactions.csv`, filter) },
  ])}
</section>`;
}

function filterForm(path: string, { filter, filterErrors }: EndUserView): string {
  const kinds = KINDS.map(
    (kind) => html`<option value="${kind}"!${kind === filter.kind ? ' selected' : ''}>${kindLabel(kind)}</option>`,
  );
  // Browsers ignore the value of a date field that is not a date.
  const valid = (day: 'from' | 'to') => (filterErrors[day] ? '' : filter[day]);
  const state = { values: { from: valid('from'), to: valid('to') }, errors: filterErrors };
  const dates = { type: 'date', isOptional: true, isOptionalSaid: false } as const;
  return html`<form class="form filter" method="get" action="${path}#transactions">
<div class="field"><label for="kind">Type</label>
<select class="input" id="kind" name="kind"><option value="">All</option>!${kinds}</select></div>
!${field({ ...dates, id: 'from', name: 'from', label: 'From (UTC)' }, state)}
!${field({ ...dates, id: 'to', name: 'to', label: 'To (UTC)' }, state)}
<button class="button secondary" type="submit">Filter</button>
</form>`;
}

function pathOf(path: string, filter: HistoryFilter, older: string | null = null): string {
  const given = Object.entries(filter).filter(([, value]) => value !== '');
  const query = new URLSearchParams(older === null ? given : [...given, ['page', older]]);
  const isPage = !path.endsWith('.csv') && query.size > 0;
  return `${path}${query.size === 0 ? '' : `?${query}`}${isPage ? '#transactions' : ''}`;
}

function historyTable({ history, openings }: EndUserView): string {
  const rows = history.map(
    (entry) => html`<tr role="row">
<td role="cell" data-label="Time" class="when">!${moment(entry.createdAt)}</td>
<td role="cell" data-label="Type">!${kindBadge(entry.kind)}</td>
<td role="cell" data-label="Amount" class="number">!${amountLabel(entry)}</td>
<td role="cell" data-label="Cycle" class="touched">!${touchedCycles(entry, openings)}!${entry.kind === 'stop-cycle' ? '' : html`<span class="expires muted small">Expires !${endTime(entry.expiresAt)}</span>`}</td>
<td role="cell" data-label="By" class="by"><span>!${actorLabel(entry.by)}</span>!${entry.note === null ? '' : html`<span class="note">“${entry.note}”</span>`}</td>
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Type'], ['Amount', 'number'], ['Cycle'], ['By and note']] as const;
  return table({ label: 'Transactions', classes: 'history', columns, rows });
}

/** Returns the name of the cycle that a transaction touched, or a list if there are several, each with its amount. */
function touchedCycles({ postings }: HistoryEntry, openings: EndUserView['openings']): string {
  const [only] = postings;
  const nameOf = ({ cycleId, period }: HistoryEntry['postings'][number]) =>
    cycleName(cycleId, period, openings.get(cycleId));
  if (only !== undefined && postings.length === 1) return nameOf(only);
  const items = postings
    .slice(0, NAMED_CYCLES_MAX)
    .map((posting) => html`<li><span class="number">${signedText(posting.amount)}</span> !${nameOf(posting)}</li>`);
  const others = postings.length - items.length;
  const more = others === 0 ? '' : html`<li class="muted">and ${numberText(others)} more</li>`;
  return html`<ul class="draws">!${items}!${more}</ul>`;
}
