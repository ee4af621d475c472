// The event types, and the checkboxes with which a user chooses the types that an endpoint receives.

import { html } from 'ghtml';
import { EVENT_TYPES, type EventType } from '../../../store/event-log.ts';
import type { FormState } from '../form-field.ts';

/** The first word of a type names its group. */
const GROUPS: Readonly<Record<string, string>> = {
  credits: 'Credits',
  cycle: 'Cycles',
  hold: 'Holds',
  balance: 'Balance',
};

const MEANINGS: Readonly<Record<EventType, string>> = {
  'credits.added': 'Credits were added',
  'credits.subtracted': 'Credits were spent',
  'credits.refunded': 'Credits were refunded',
  'credits.expired': 'Unused credits expired',
  'credits.expiring': 'Credits will expire soon',
  'cycle.started': 'A cycle started',
  'cycle.renewed': 'A cycle renewed',
  'cycle.stopped': 'A cycle was stopped',
  'hold.lapsed': 'A hold lapsed',
  'balance.low': 'The balance fell below a threshold',
  'balance.exhausted': 'The balance fell to 0',
  'balance.recovered': 'The balance is no longer 0, or no longer below a threshold',
};

/**
 * The name of the checkboxes. If a form was refused, `values[TYPES_FIELD]` contains the checked types, separated by
 * commas.
 */
export const TYPES_FIELD = 'types';

/** @param initial the types that are checked when the page is loaded; empty if the endpoint receives all types */
export function typesField(initial: readonly EventType[], state: FormState | null): string {
  const chosen = new Set(state === null ? initial : (state.values[TYPES_FIELD] ?? '').split(','));
  const error = state?.errors[TYPES_FIELD];
  const groups = Object.entries(GROUPS).map(([prefix, label]) => {
    const types = EVENT_TYPES.filter((type) => type.startsWith(`${prefix}.`));
    return html`<fieldset class="choices"><legend>${label}</legend>!${types.map((type) => choice(type, chosen.has(type)))}</fieldset>`;
  });
  return html`<fieldset class="choice-groups"><legend>Event types</legend>
<p class="hint">Select the types to send to the endpoint. If you select none, Scrip sends all types, including types that later versions add.</p>
!${error ? html`<p class="error">${error}</p>` : ''}
<div class="groups">!${groups}</div>
</fieldset>`;
}

function choice(type: EventType, isChosen: boolean): string {
  return html`<label class="choice"><input type="checkbox" name="${TYPES_FIELD}" value="${type}"!${isChosen ? ' checked' : ''}> <span><span class="mono">${type}</span> <span class="muted small">${MEANINGS[type]}</span></span></label>`;
}

export function typesLabel(types: readonly EventType[]): string {
  if (types.length === 0) return 'All types';
  return types.map((type) => html`<span class="whole mono">${type}</span>`).join(', ');
}
