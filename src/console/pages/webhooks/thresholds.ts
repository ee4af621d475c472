// The page on which members choose when the balance.low and credits.expiring events happen.

import { html } from 'ghtml';
import type { Instant } from '../../../ledger/instant.ts';
import { EXPIRING_DAYS_MAX, THRESHOLDS_MAX, thresholdOf } from '../../../store/event-log.ts';
import { creditsText, moment } from '../../figures.ts';
import { type PageContext, page } from '../../layout.ts';
import { type FormState, field, formError } from '../form-field.ts';
import { table } from '../lists.ts';
import { sectionTabs, THRESHOLDS_PATH } from './webhook-paths.ts';

export interface ThresholdsView {
  readonly thresholds: readonly { readonly below: string; readonly createdAt: Instant }[];
  readonly expiringDays: number;
  readonly refused: { readonly form: 'below' | 'days'; readonly state: FormState } | null;
}

export function thresholdsPage({ thresholds, expiringDays, refused }: ThresholdsView, context: PageContext): string {
  const stateOf = (form: 'below' | 'days') => (refused?.form === form ? refused.state : null);
  const below = { id: 'below', name: 'below', label: 'Below' };
  const days = { id: 'days', name: 'days', label: 'Days before expiry', initial: String(expiringDays) };
  const body = html`<p class="muted lede">Choose when the <span class="mono">balance.low</span> and <span class="mono">credits.expiring</span> events happen, for all end users of this account.</p>
!${sectionTabs(THRESHOLDS_PATH)}
<section class="card">
<h2>Low balance</h2>
<p class="muted small">When the balance of an end user falls below a threshold, the <span class="mono">balance.low</span> event happens. The event can happen again only after the balance has been at or above the threshold. An account can have at most ${THRESHOLDS_MAX} thresholds.</p>
!${thresholds.length === 0 ? '<p class="muted">No thresholds yet. The <span class="mono">balance.low</span> event happens only after you add a threshold.</p>' : thresholdList(thresholds)}
<form class="form pair" method="post" action="${THRESHOLDS_PATH}" novalidate>
!${formError(stateOf('below'))}
!${field({ ...below, hint: 'A number of credits, such as 20, or a percentage of the latest grant, such as 20%.' }, stateOf('below'))}
<button class="button" type="submit">Add threshold</button>
</form>
</section>
<section class="card">
<h2>Expiring credits</h2>
<p class="muted small">The <span class="mono">credits.expiring</span> event happens a set number of days before credits expire. Enter a number from 1 to ${EXPIRING_DAYS_MAX}.</p>
<form class="form pair" method="post" action="${THRESHOLDS_PATH}/expiring" novalidate>
!${field({ ...days, isWholeNumber: true }, stateOf('days'))}
<button class="button" type="submit">Save</button>
</form>
</section>`;
  return page({ title: 'Thresholds', ...context, current: 'webhooks', body });
}

function thresholdList(thresholds: ThresholdsView['thresholds']): string {
  const rows = thresholds.map(
    ({ below, createdAt }, index) => html`<tr role="row">
<td role="cell" data-label="Below" id="threshold-${index}"><span class="strong">${thresholdLabel(below)}</span></td>
<td role="cell" data-label="Added" class="when">!${moment(createdAt)}</td>
<td role="cell" class="end"><form method="post" action="${THRESHOLDS_PATH}/remove"><input type="hidden" name="below" value="${below}"><button class="button secondary small" type="submit" aria-describedby="threshold-${index}">Remove</button></form></td>
</tr>`,
  );
  const columns = [['Below'], ['Added (UTC)', 'when'], ['Action', 'end']] as const;
  return table({ label: 'Thresholds', columns, rows });
}

function thresholdLabel(below: string): string {
  const threshold = thresholdOf(below);
  if (threshold === null) return below;
  return 'percent' in threshold ? `${threshold.percent}% of the latest grant` : creditsText(threshold.credits);
}
