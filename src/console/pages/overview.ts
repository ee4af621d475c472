// The first page: how many credits are out, what became of them over the last days, and what happened just now.

import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { creditFlowChart, type DayFlow } from '../charts/credit-flow-chart.ts';
import { largeFigure, moment, momentUtc } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { amountOf, doneByShortly, endUserLink, type Happening, kindBadge } from './activity.ts';

export interface OverviewView {
  /** What is outstanding is summed once an hour. */
  readonly asOf: Instant;
  readonly outstanding: bigint;
  readonly endUsersWithCredits: number;
  /** Oldest first, each day in its place. */
  readonly days: readonly DayFlow[];
  /** Latest first. */
  readonly recent: readonly (Happening & { readonly endUser: string })[];
  /** Where the API answers, for the line that adds the first credits. */
  readonly apiUrl: string;
}

export function overviewPage(view: OverviewView, { viewer, notice }: Pick<Page, 'viewer' | 'notice'>): string {
  const isUnused = view.recent.length === 0 && view.outstanding === 0n;
  return page({ title: 'Overview', viewer, notice, current: 'overview', body: isUnused ? first(view) : bodyOf(view) });
}

function bodyOf(view: OverviewView): string {
  return html`<h1>Overview</h1>
<section class="tiles" aria-label="Now">
!${tile('Credits outstanding', view.outstanding)}
!${tile('End users with credits', view.endUsersWithCredits)}
!${tile(
    `Spent in ${view.days.length} days`,
    view.days.reduce((sum, { spent }) => sum + spent, 0n),
  )}
!${tile(
    `Expired in ${view.days.length} days`,
    view.days.reduce((sum, { expired }) => sum + expired, 0n),
  )}
</section>
<p class="muted small">As of !${momentUtc(view.asOf)}. Days are UTC.</p>
<section class="card">
<h2>Last ${view.days.length} days</h2>
!${creditFlowChart(view.days)}
</section>
<section class="card">
<h2>Recent activity</h2>
!${view.recent.length === 0 ? '<p class="muted">Nothing has happened in a while.</p>' : recentTable(view.recent)}
</section>`;
}

function tile(label: string, value: number | bigint): string {
  return html`<div class="tile"><p class="label">${label}</p><p class="value">!${largeFigure(value)}</p></div>`;
}

function recentTable(recent: OverviewView['recent']): string {
  const rows = recent.map(
    (happening) => html`<tr role="row">
<td role="cell" data-label="When" class="when">!${moment(happening.createdAt)}</td>
<td role="cell" data-label="What">!${kindBadge(happening.kind)}</td>
<td role="cell" data-label="Amount" class="number">${amountOf(happening)}</td>
<td role="cell" data-label="End user">!${endUserLink(happening.endUser)}</td>
<td role="cell" data-label="By" class="by">!${doneByShortly(happening.by)}</td>
</tr>`,
  );
  return html`<div class="scroll" role="region" aria-label="Recent activity" tabindex="0"><table class="table stack recent" role="table">
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">When (UTC)</th><th scope="col" role="columnheader">What</th><th scope="col" role="columnheader" class="number">Amount</th><th scope="col" role="columnheader">End user</th><th scope="col" role="columnheader">By</th></tr></thead>
<tbody role="rowgroup">!${rows}</tbody>
</table></div>`;
}

/** An example, so that the line works as it stands: end users need not be registered. */
export const EXAMPLE_END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

function first({ apiUrl }: OverviewView): string {
  return html`<h1>Overview</h1>
<section class="card empty">
<h2>Add the first credits</h2>
<p>Nothing has happened in this account yet. Two steps, and the first end user has credits:</p>
<ol class="steps">
<li><a href="/console/api-keys">Create an API key</a> with the scope <em>write</em>, and put it into the variable <code>KEY</code>.</li>
<li>Run this, with any UUID for the end user:
<pre class="code" tabindex="0"><code>!${curlLine(apiUrl, '$KEY')}</code></pre></li>
</ol>
<p class="muted">The credits show up here and on the page of the end user.</p>
</section>`;
}

/** Adds 100 credits; escaped for HTML. */
export function curlLine(apiUrl: string, key: string): string {
  // ghtml takes templates as they are written: a backslash is a backslash.
  return html`curl -X POST ${apiUrl}/add \
  -H "Authorization: Bearer ${key}" \
  -H 'Content-Type: application/json' \
  -d '{"end_user_id":"${EXAMPLE_END_USER}","amount":100}'`;
}
