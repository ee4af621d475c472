// The open holds of an end user, with a link to release each hold.

import { html } from 'ghtml';
import type { Instant } from '../../../ledger/instant.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { durationText, moment, numberText, wrappableNumber } from '../../figures.ts';
import { type Activity, byCell, table } from '../lists.ts';
import { transactionPath } from './end-user-paths.ts';

interface HoldView extends Pick<Activity, 'id' | 'amount' | 'createdAt' | 'by' | 'note'> {
  readonly expiresAt: Instant;
}

export interface HoldsView {
  readonly endUser: string;
  readonly now: Instant;
  readonly holds: readonly HoldView[];
  /** The IDs of all open holds, including those that the page does not list. */
  readonly openHolds: ReadonlySet<TransactionId>;
}

export function holdsSection({ endUser, now, holds, openHolds }: HoldsView): string {
  if (holds.length === 0) return '';
  const rows = holds.map(
    (hold) => html`<tr role="row">
<td role="cell" data-label="Held" id="hold-${hold.id}"><span class="strong">!${wrappableNumber(hold.amount)}</span></td>
<td role="cell" data-label="Since" class="when">!${moment(hold.createdAt)}</td>
<td role="cell" data-label="Until" class="when">!${moment(hold.expiresAt)} <br><span class="muted small">${durationText(hold.expiresAt - now)} left</span></td>
!${byCell(hold)}
<td role="cell" class="end"><a class="button secondary small" href="${transactionPath(endUser, hold.id)}" aria-describedby="hold-${hold.id}">Release</a></td>
</tr>`,
  );
  const columns = [['Held'], ['Since (UTC)'], ['Until (UTC)'], ['By and note'], ['Action', 'end']] as const;
  const count =
    holds.length < openHolds.size
      ? ` Showing the oldest ${numberText(holds.length)} of ${numberText(openHolds.size)}. You can release newer holds from the list of transactions.`
      : '';
  return html`<section class="card" id="holds">
<h2>Holds</h2>
<p class="muted small">A hold sets credits aside until your backend captures or releases it. If neither happens in time, the hold lapses and its credits return to their cycles.${count}</p>
!${table({ label: 'Holds', classes: 'holds', columns, rows })}
</section>`;
}
