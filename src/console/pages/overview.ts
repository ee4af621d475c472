// The first page of an account: credits outstanding, credits per day, recent activity. An account without any shows how
// to add its first credits instead.

import { html } from 'ghtml';
import type { Overview } from '../../store/console-store.ts';
import { creditFlowChart } from '../charts/credit-flow-chart.ts';
import { largeNumber, moment, momentUtc } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { addCreditsCommand } from './api-keys.ts';
import { type Activity, actorLabel, amountText, endUserLink, kindBadge, table } from './lists.ts';

export interface OverviewView extends Overview {
  /** Newest first. */
  readonly recent: readonly (Activity & { readonly endUser: string })[];
  /** The origin of the API. */
  readonly apiUrl: string;
}

export function overviewPage(view: OverviewView, viewer: Page['viewer']): string {
  const isUnused = view.recent.length === 0 && view.outstanding === 0n;
  const body = isUnused ? firstSteps(view) : bodyOf(view);
  return page({ title: 'Overview', viewer, current: 'overview', body });
}

function bodyOf({ asOf, outstanding, days, recent }: OverviewView): string {
  const total = (flow: 'spent' | 'expired') => days.reduce((sum, day) => sum + day[flow], 0n);
  return html`<section class="tiles" aria-label="Totals">
!${tile('Credits outstanding', outstanding)}
!${tile(`Spent in the last ${days.length} days`, total('spent'))}
!${tile(`Expired in the last ${days.length} days`, total('expired'))}
</section>
<p class="muted small">As of !${momentUtc(asOf)}. Days start at 00:00 UTC.</p>
<section class="card">
<h2>Credits per day, last ${days.length} days</h2>
!${creditFlowChart(days)}
</section>
<section class="card">
<h2>Recent activity</h2>
!${recent.length === 0 ? '<p class="muted">No recent activity.</p>' : recentTable(recent)}
</section>`;
}

function tile(label: string, value: bigint): string {
  return html`<div class="tile"><p class="label">${label}</p><p class="value">!${largeNumber(value)}</p></div>`;
}

function recentTable(recent: OverviewView['recent']): string {
  const rows = recent.map(
    (activity) => html`<tr role="row">
<td role="cell" data-label="Time" class="when">!${moment(activity.createdAt)}</td>
<td role="cell" data-label="Type">!${kindBadge(activity.kind)}</td>
<td role="cell" data-label="Amount" class="number">${amountText(activity)}</td>
<td role="cell" data-label="End user">!${endUserLink(activity.endUser)}</td>
<td role="cell" data-label="By" class="by">!${shortActorLabel(activity)}</td>
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Type'], ['Amount', 'number'], ['End user'], ['By']] as const;
  return table({ label: 'Recent activity', classes: 'recent', columns, rows });
}

/** Without the characters of an API key, so that it fits on one line. */
function shortActorLabel({ by }: Activity): string {
  return by.kind === 'api-key' ? html`${by.name}` : actorLabel(by);
}

function firstSteps({ apiUrl }: OverviewView): string {
  return html`<section class="card empty">
<h2>Add your first credits</h2>
<p>This account has no credits yet. To add some:</p>
<ol class="steps">
<li><a href="/console/api-keys">Create an API key</a> with the <em>write</em> scope and set the shell variable <code>KEY</code> to it.</li>
<li>Run this command. The end user can be any UUID:
<pre class="code" tabindex="0"><code>!${addCreditsCommand(apiUrl, '$KEY')}</code></pre></li>
</ol>
<p class="muted">The credits then appear here and on the end user's page.</p>
</section>`;
}
