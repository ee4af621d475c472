// The page that answers "why is my balance 12?": what an end user has now, in which cycles, how it came to that, and
// every transaction with who did it. The forms that change it are in adjust-forms.ts.

import { html } from 'ghtml';
import type { Amount } from '../../ledger/amount.ts';
import { type Cycle, renews } from '../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { instantOf, type TransactionId } from '../../ledger/transaction-id.ts';
import { balanceChart } from '../charts/balance-chart.ts';
import type { BalanceOverTime } from '../charts/balance-over-time.ts';
import { remainingBar, timeLeftBar } from '../charts/cycle-bars.ts';
import {
  breakableFigure,
  dayText,
  durationText,
  ending,
  figure,
  largeFigure,
  moment,
  momentText,
  momentUtc,
  movement,
} from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { amountOf, doneBy, type Happening, kindBadge } from './activity.ts';
import { type AdjustForms, adjustForms, type Change } from './adjust-forms.ts';
import { pager } from './end-users.ts';

const CYCLES_SHOWN_MAX = 200;
/** More than these scroll within their card. */
const CYCLES_IN_SIGHT_MAX = 12;

export interface HistoryEntry extends Happening {
  readonly expiresAt: Instant;
  /** The cycles that it touched, and by how much. */
  readonly touched: readonly { readonly cycleId: TransactionId; readonly period: number; readonly amount: number }[];
}

export interface EndUserView {
  readonly endUser: string;
  readonly now: Instant;
  readonly balance: Amount;
  /** Those that have not ended, oldest first: the order in which they are spent. */
  readonly cycles: readonly Cycle[];
  /** Whether this is the page of the latest transactions. */
  readonly isLatest: boolean;
  /** Null where it is not drawn: on the pages of older transactions, and when there is more than a line can show. */
  readonly overTime: BalanceOverTime | null;
  /** Whether the past of the chart begins later than asked for, since there was too much of it to read. */
  readonly isPastCut: boolean;
  /** Latest first. */
  readonly history: readonly HistoryEntry[];
  /** Where the older ones begin; null when there are none. */
  readonly older: string | null;
  readonly forms: AdjustForms;
}

export function endUserPage(view: EndUserView, { viewer, notice }: Pick<Page, 'viewer' | 'notice'>): string {
  return page({ title: `End user ${view.endUser}`, viewer, notice, current: 'end-users', body: bodyOf(view) });
}

function bodyOf(view: EndUserView): string {
  const { endUser, now, balance } = view;
  return html`<p class="crumb"><a href="/console/end-users">Back to the list</a></p>
<h1>End user <span class="mono id">${endUser}</span></h1>
<div class="columns">
<div class="lead">
<section class="card balance" aria-label="Balance now">
<p class="label">Balance now</p>
<p class="value">!${largeFigure(balance)} <span class="unit">${balance === 1 ? 'credit' : 'credits'}</span></p>
<p class="muted small">At !${momentUtc(now)}</p>
</section>
!${adjustForms(endUser, activeCycleOf(view.cycles), view.forms)}
</div>
<div class="rest">
!${cyclesSection(view)}
!${chartSection(view)}
</div>
</div>
!${historySection(view)}`;
}

function activeCycleOf(cycles: readonly Cycle[]): Cycle | null {
  return cycles.find(({ type, status }) => type === 'recurring' && status === 'active') ?? null;
}

function cyclesSection({ cycles, now }: EndUserView): string {
  const shown = shownOf(cycles);
  const rows = shown.map(
    (cycle) => html`<tr role="row">
<td role="cell" data-label="Cycle"><span class="strong">!${nameOf(cycle)}</span><br><span class="muted small">${typeOf(cycle)}, since ${dayText(cycle.start)}</span></td>
<td role="cell" data-label="Credits left"><span>!${breakableFigure(cycle.remaining)} of !${breakableFigure(cycle.amount)}</span>!${remainingBar(cycle)}</td>
<td role="cell" data-label="Time left" class="when"><span>${cycle.end === INSTANT_MAX ? 'Never ends' : `${durationText(cycle.end - now)}`}</span>!${timeLeftBar(cycle, now)}</td>
<td role="cell" data-label="Then">!${thenOf(cycle)}</td>
</tr>`,
  );
  return html`<section class="card">
<h2>Cycles</h2>
!${
    cycles.length === 0
      ? '<p class="muted">No credits now. Add some, or start a cycle that renews.</p>'
      : html`<p class="muted small">In the order in which they are spent: oldest first. Times are UTC.!${shown.length === cycles.length ? '' : html` These are ${figure(shown.length)} of ${figure(cycles.length)}.`}</p>
<div class="scroll!${shown.length > CYCLES_IN_SIGHT_MAX ? ' tall' : ''}" role="region" aria-label="Cycles" tabindex="0"><table class="table stack cycles" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Cycle</th><th scope="col" role="columnheader">Credits left</th><th scope="col" role="columnheader">Time left</th><th scope="col" role="columnheader">Then</th></tr></thead><tbody role="rowgroup">!${rows}</tbody></table></div>`
  }
</section>`;
}

/** Of very many, those that still have something in them. */
function shownOf(cycles: readonly Cycle[]): readonly Cycle[] {
  if (cycles.length <= CYCLES_SHOWN_MAX) return cycles;
  return cycles.filter((cycle) => cycle.remaining > 0 || renews(cycle)).slice(0, CYCLES_SHOWN_MAX);
}

function typeOf({ type, status }: Cycle): string {
  if (type === 'one-time') return 'one-time';
  return status === 'canceled' ? 'recurring, stopped' : 'recurring';
}

/** What happens at its end. */
function thenOf(cycle: Cycle): string {
  if (cycle.end === INSTANT_MAX) return '';
  const what = renews(cycle) ? `Renews to ${figure(cycle.amount)}` : 'Expires';
  return html`${what} <br><span class="muted small">!${ending(cycle.end)}</span>`;
}

/** Cycles have no name of their own: they are told apart by when they were made, as the transaction that made them says it, and periods by their number. */
function nameOf({ id, period }: { readonly id: TransactionId; readonly period: number }): string {
  const made = momentText(instantOf(id));
  return html`<span class="cycle" title="${id}">${made}${period === 0 ? '' : ` · period ${period + 1}`}</span>`;
}

function chartSection({ isLatest, overTime, isPastCut, cycles, history }: EndUserView): string {
  if (!isLatest || (cycles.length === 0 && history.length === 0)) return '';
  if (overTime === null)
    return '<section class="card"><h2>Balance over time</h2><p class="muted">There are more cycles than a line can show.</p></section>';
  return html`<section class="card">
<h2>Balance over time</h2>
!${isPastCut ? html`<p class="muted small">So much has happened that the line begins on ${dayText(overTime.past[0]?.at ?? overTime.now)}.</p>` : ''}
!${balanceChart(overTime)}
</section>`;
}

function historySection({ endUser, history, older, isLatest }: EndUserView): string {
  const path = `/console/end-users/${endUser}`;
  return html`<section class="card" id="transactions">
<h2>${isLatest ? 'Transactions' : 'Older transactions'}</h2>
!${history.length === 0 ? '<p class="muted">Nothing has happened yet.</p>' : historyTable(history)}
!${pager({ isFirst: isLatest, first: path, next: older === null ? null : `${path}?from=${encodeURIComponent(older)}#transactions`, labels: ['Latest', 'Older'] })}
</section>`;
}

function historyTable(history: readonly HistoryEntry[]): string {
  const heads = ['When (UTC)', 'What', 'Amount', 'Cycle', 'By, and why'].map(
    (head) => html`<th scope="col" role="columnheader"!${head === 'Amount' ? ' class="number"' : ''}>${head}</th>`,
  );
  const rows = history.map(
    (entry) => html`<tr role="row">
<td role="cell" data-label="When" class="when">!${moment(entry.createdAt)}</td>
<td role="cell" data-label="What">!${kindBadge(entry.kind)}</td>
<td role="cell" data-label="Amount" class="number">${amountOf(entry)}</td>
<td role="cell" data-label="Cycle">!${touchedOf(entry)}!${entry.kind === 'stop-cycle' ? '' : html`<span class="expires muted small">Expires !${ending(entry.expiresAt)}</span>`}</td>
<td role="cell" data-label="By" class="by"><span>!${doneBy(entry.by)}</span>!${entry.note === null ? '' : html`<span class="note">“${entry.note}”</span>`}</td>
</tr>`,
  );
  return html`<div class="scroll" role="region" aria-label="Transactions" tabindex="0"><table class="table stack history" role="table"><thead role="rowgroup"><tr role="row">!${heads}</tr></thead><tbody role="rowgroup">!${rows}</tbody></table></div>`;
}

/** One cycle by its name; several with what each gave. */
function touchedOf({ touched }: HistoryEntry): string {
  const named = touched.map(({ cycleId, period, amount }) => ({ name: nameOf({ id: cycleId, period }), amount }));
  if (named.length === 1) return named[0]?.name ?? '';
  return html`<ul class="draws">!${named.map(({ name, amount }) => html`<li><span class="number">${movement(amount)}</span> !${name}</li>`)}</ul>`;
}

/** A sentence for the notice after a change. */
export function changeText(change: Change): string {
  switch (change) {
    case 'add':
      return 'The credits were added.';
    case 'subtract':
      return 'The credits were subtracted.';
    case 'start-cycle':
      return 'The cycle was started.';
    case 'stop-cycle':
      return 'The cycle was stopped. What is left of it stays usable until its end.';
  }
}
