// The page for an end user. It answers questions such as "why is my balance 12?".

import { html } from 'ghtml';
import type { Amount } from '../../../ledger/amount.ts';
import { type Cycle, isActiveRecurring } from '../../../ledger/cycle.ts';
import { type BalanceOverTime, balanceChart } from '../../charts/balance-chart.ts';
import { largeNumber, momentUtc, wrappableNumber } from '../../figures.ts';
import { type PageContext, page } from '../../layout.ts';
import { type AdjustForms, adjustForms } from './adjust-forms.ts';
import { cyclesSection } from './cycles.ts';
import { type HistoryView, historySection } from './history.ts';
import { type HoldsView, holdsSection } from './holds.ts';
import { planSection } from './plan.ts';

export interface EndUserView extends HoldsView, HistoryView {
  /** The credits that can be spent. */
  readonly balance: Amount;
  readonly held: Amount;
  /** The cycles that have not ended, in the order in which they are spent. */
  readonly cycles: readonly Cycle[];
  readonly balanceOverTime: BalanceOverTime | null;
  readonly forms: AdjustForms;
}

export function endUserPage(view: EndUserView, context: PageContext): string {
  const { endUser, now, cycles, forms } = view;
  const activeCycle = cycles.find(isActiveRecurring) ?? null;
  const body = html`<p class="crumb"><a href="/console/end-users">Back to end users</a></p>
<div class="heading-row"><h1>End user <span class="mono id" id="end-user-id">${endUser}</span></h1>
<button class="button secondary small" type="button" data-copy="end-user-id" hidden>Copy</button>
<span class="muted small" id="end-user-id-copied" role="status"></span></div>
<div class="columns">
<div class="lead">
!${balanceSection(view)}
!${adjustForms({ endUser, activeCycle, forms })}
</div>
<div class="rest">
!${planSection(endUser, activeCycle)}
!${cyclesSection(cycles, now)}
!${holdsSection(view)}
!${chartSection(view)}
</div>
</div>
!${historySection(view)}`;
  return page({ title: `End user ${endUser}`, ...context, current: 'end-users', body });
}

function balanceSection({ now, balance, held }: EndUserView): string {
  return html`<section class="card balance" aria-label="Current balance">
<p class="label">Current balance</p>
<p class="value">!${largeNumber(balance)} <span class="unit">${balance === 1 ? 'credit' : 'credits'}</span></p>
!${held === 0 ? '' : html`<p class="held">!${wrappableNumber(held)} more <a href="#holds">held</a></p>`}
<p class="muted small">As of !${momentUtc(now)}</p>
</section>`;
}

function chartSection({ balanceOverTime, cycles, history }: EndUserView): string {
  if (balanceOverTime === null || (cycles.length === 0 && history.length === 0)) return '';
  return html`<section class="card">
<h2>Balance over time</h2>
<p class="muted small">Days start at 00:00 UTC.</p>
!${balanceChart(balanceOverTime)}
</section>`;
}
