// The page on which a user confirms a change of plan. It shows the effect on the balance.

import { html } from 'ghtml';
import type { SeenCycle } from '../../../ledger/command.ts';
import { type Cycle, spendable } from '../../../ledger/cycle.ts';
import { INSTANT_MAX } from '../../../ledger/instant.ts';
import type { Plan } from '../../../ledger/plan.ts';
import type { Note } from '../../../ledger/posting.ts';
import type { Preview } from '../../../ledger/preview.ts';
import { creditsText, endTimeUtc, momentUtc } from '../../figures.ts';
import { type Page, page } from '../../layout.ts';
import { type FormState, idempotencyKeyInput } from '../form-field.ts';
import { type Fact, factList } from '../lists.ts';
import { creditsEveryText, planSummaryText } from './cycle-names.ts';
import { endUserPath } from './end-user-paths.ts';

/** The field with the start of the confirmed plan: an instant, or `STARTS_NOW`. */
export const CONFIRMED = 'confirmed';
export const STARTS_NOW = 'now';

/** The field with the active cycle that the preview shows. */
export const SEEN = 'seen';

/** Returns null if the form has no such field, or if the preview showed no active cycle. */
export function seenOf(text: string): SeenCycle | null {
  const [cycle = '', next = null] = text.split('/');
  return cycle === '' ? null : { cycle, next };
}

function seenText(active: Cycle | null): string {
  if (active === null) return '';
  return active.next === null ? active.id : `${active.id}/${active.next.id}`;
}

export interface PlanChangeView {
  readonly endUser: string;
  /** The active cycle; null if it was stopped after the form was loaded. */
  readonly activeCycle: Cycle | null;
  readonly plan: Plan;
  readonly note: Note | null;
  readonly preview: Preview;
  /** The value of the `CONFIRMED` field. */
  readonly start: string;
  /** Whether the user has confirmed a preview that is no longer correct. */
  readonly isChanged: boolean;
  /** The entered values, which the browser sends again with the confirmation. */
  readonly values: FormState['values'];
  readonly idempotencyKey: string;
}

export function planChangePage(view: PlanChangeView, viewer: Page['viewer']): string {
  const { endUser, values, idempotencyKey } = view;
  const inputs = Object.entries(values)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
  const title = 'Change the plan?';
  const body = html`<p class="crumb"><a href="${endUserPath(endUser)}">Back to end user ${endUser}</a></p>
<h1>${title}</h1>
!${view.isChanged ? CHANGED : ''}
<section class="card narrow">
!${factList(factsOf(view))}
<form class="form" method="post" action="${endUserPath(endUser)}/start-cycle">
!${inputs}
<input type="hidden" name="${CONFIRMED}" value="${view.start}">
<input type="hidden" name="${SEEN}" value="${seenText(view.activeCycle)}">
!${idempotencyKeyInput(idempotencyKey)}
<div class="buttons"><button class="button" type="submit">${isLater(view) ? 'Schedule change' : 'Change plan'}</button>
<a class="button secondary" href="${endUserPath(endUser)}">Cancel</a></div>
</form>
</section>`;
  return page({ title, viewer, current: 'end-users', body });
}

const CHANGED = html`<p class="error" role="alert">Nothing was changed, because the end user's plan has changed since the preview that you confirmed. Check the new preview, and confirm again.</p>`;

function isLater({ start }: PlanChangeView): boolean {
  return start !== STARTS_NOW;
}

function factsOf(view: PlanChangeView): readonly Fact[] {
  const { activeCycle, plan, note, preview } = view;
  const { startsAt, balance, balanceAtStart, expiring } = preview;
  const later = isLater(view);
  return [
    ['Current plan', html`${activeCycle === null ? 'None: no cycle is active.' : planSummaryText(activeCycle.plan)}`],
    ['New plan', html`${planSummaryText(plan)}`],
    ['Starts', later ? momentUtc(startsAt) : 'Now'],
    ['Balance after you confirm', html`${creditsText(balance)}`],
    ['Balance when the plan starts', later ? html`${creditsText(balanceAtStart)}, if nothing changes before then` : ''],
    [
      'Expires when the plan starts',
      later && expiring > 0 ? html`${creditsText(expiring)} of the current period, unless spent first` : '',
    ],
    ['Current cycle', later || activeCycle === null ? '' : stopText(activeCycle)],
    ['Canceled', activeCycle?.next ? html`The scheduled change to ${creditsEveryText(activeCycle.next.plan)}` : ''],
    ['Note', note === null ? '' : html`<bdi>“${note}”</bdi>`],
  ];
}

/** Returns trusted HTML. */
function stopText(cycle: Cycle): string {
  const left = spendable(cycle);
  const s = left === 1 ? 's' : '';
  const future = cycle.end === INSTANT_MAX ? `never expire${s}` : html`stay${s} usable until !${endTimeUtc(cycle.end)}`;
  return html`Stops. Its remaining ${creditsText(left)} !${future}.`;
}
