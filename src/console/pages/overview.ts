// The start page of an account: outstanding credits, credits per day or month, and recent activity. For an unused
// account, the page shows how to add the first credits.

import { html } from 'ghtml';
import type { Overview, OverviewDay } from '../../store/console-store.ts';
import type { EndUserCounts } from '../../store/end-user-summaries.ts';
import { creditFlowChart, monthsOf } from '../charts/credit-flow-chart.ts';
import { largeNumber, moment } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { addCreditsCommand } from './api-keys.ts';
import { type HistoryEntry, movedCredits } from './end-user/history.ts';
import { type Activity, actorLabel, endUserLink, type Freshness, freshnessText, kindBadge, table } from './lists.ts';

export const PERIODS = ['7', '30', '90', '12m'] as const;
export type Period = (typeof PERIODS)[number];

const PERIOD_TEXTS: Readonly<Record<Period, string>> = {
  7: '7 days',
  30: '30 days',
  90: '90 days',
  '12m': '12 months',
};

export interface ActorChoice {
  readonly actor: string;
  readonly label: string;
}

export interface OverviewView extends Overview, Freshness {
  readonly counts: EndUserCounts;
  readonly period: Period;
  /** The actor that the user chose in the filter; null for all actors. */
  readonly by: ActorChoice | null;
  readonly keys: readonly ActorChoice[];
  readonly members: readonly ActorChoice[];
  /** The latest transaction of each of the most recently active end users, newest first. */
  readonly recent: readonly (Activity & Pick<HistoryEntry, 'postings'> & { readonly endUser: string })[];
  readonly apiUrl: string;
}

export function overviewPage(view: OverviewView, viewer: Page['viewer']): string {
  const isUnused = view.recent.length === 0 && view.outstanding === 0n && view.by === null;
  const body = isUnused ? firstSteps(view) : bodyOf(view);
  return page({ title: 'Overview', viewer, current: 'overview', body });
}

function bodyOf(view: OverviewView): string {
  const { period, days, by, recent } = view;
  const unit = period === '12m' ? 'month' : 'day';
  const title = `Credits per ${unit}, last ${PERIOD_TEXTS[period]}${by === null ? '' : `, by ${by.label}`}`;
  const bars = unit === 'month' ? monthsOf(days) : days;
  return html`!${choice(view)}
<section class="tiles" aria-label="Totals">
!${by === null ? tilesOfAll(view) : tilesOfActor(view)}
</section>
<p class="muted small">!${freshnessText(view, 'The totals')} Days start at 00:00 UTC. Refunds are subtracted from the credits spent.</p>
<section class="card">
<h2>${title}</h2>
!${creditFlowChart({ title, unit, bars, isOfActor: by !== null })}
</section>
!${
    by === null
      ? html`<section class="card">
<h2>Recent activity</h2>
!${recent.length === 0 ? '<p class="muted">No recent activity.</p>' : recentTable(recent)}
</section>`
      : ''
  }`;
}

function choice({ period, by, keys, members }: OverviewView): string {
  const periods = PERIODS.map(
    (one) => html`<option value="${one}"!${one === period ? ' selected' : ''}>Last ${PERIOD_TEXTS[one]}</option>`,
  );
  const groupOf = (label: string, actors: readonly ActorChoice[]) =>
    actors.length === 0
      ? ''
      : html`<optgroup label="${label}">!${actors.map((one) => html`<option value="${one.actor}"!${one.actor === by?.actor ? ' selected' : ''}>${one.label}</option>`)}</optgroup>`;
  return html`<form class="form filter" method="get" action="/console/overview">
<div class="field"><label for="period">Period</label><select class="input" id="period" name="period">!${periods}</select></div>
<div class="field"><label for="by">Made by</label>
<select class="input" id="by" name="by"><option value="">Anyone</option>!${groupOf('API keys', keys)}!${groupOf('Members', members)}</select></div>
<button class="button secondary" type="submit">Show</button>
</form>`;
}

function tilesOfAll({ outstanding, counts, days, period }: OverviewView): string {
  const total = (flow: 'spent' | 'expired') => days.reduce((sum, day) => sum + day[flow], 0n);
  return html`!${tile('Credits outstanding', outstanding)}
!${tile('End users with credits', counts.withCredits)}
!${tile(`Spent in the last ${PERIOD_TEXTS[period]}`, total('spent'))}
!${tile(`Expired in the last ${PERIOD_TEXTS[period]}`, total('expired'))}`;
}

function tilesOfActor({ days }: OverviewView): string {
  const total = (amountOf: (day: OverviewDay) => bigint) => days.reduce((sum, day) => sum + amountOf(day), 0n);
  return html`!${tile(
    'Granted',
    total(({ added, started }) => added + started),
  )}
!${tile(
    'Spent',
    total(({ spent }) => spent),
  )}
!${tile(
    'Transactions',
    days.reduce((sum, { transactions }) => sum + transactions, 0),
  )}`;
}

function tile(label: string, value: number | bigint): string {
  return html`<div class="tile"><p class="label">${label}</p><p class="value">!${largeNumber(value)}</p></div>`;
}

function recentTable(recent: OverviewView['recent']): string {
  const rows = recent.map(
    (activity) => html`<tr role="row">
<td role="cell" data-label="Time" class="when">!${moment(activity.createdAt)}</td>
<td role="cell" data-label="Type">!${kindBadge(activity.kind)}</td>
<td role="cell" data-label="Amount" class="number">!${movedCredits(activity)}</td>
<td role="cell" data-label="End user">!${endUserLink(activity.endUser)}</td>
<td role="cell" data-label="By" class="by">!${shortActorLabel(activity)}</td>
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Type'], ['Amount', 'number'], ['End user'], ['By']] as const;
  return table({ label: 'Recent activity', classes: 'recent', columns, rows });
}

/** For an API key, shows only its name, so that the label fits on one line. */
function shortActorLabel({ by }: Activity): string {
  return by.kind === 'api-key' ? html`<bdi>${by.name}</bdi>` : actorLabel(by);
}

function firstSteps({ apiUrl }: OverviewView): string {
  return html`<section class="card empty">
<h2>Add your first credits</h2>
<p>This account has no credits yet. To add some:</p>
<ol class="steps">
<li><a href="/console/api-keys">Create an API key</a> with the <em>write</em> scope and set the shell variable <code>SCRIP_KEY</code> to it.</li>
<li>Run this command. The ID of the end user can be any UUID:
<pre class="code" tabindex="0"><code>!${addCreditsCommand(apiUrl, '$SCRIP_KEY')}</code></pre></li>
</ol>
<p class="muted">The credits appear here and on the end user's page.</p>
</section>`;
}
