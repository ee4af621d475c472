// The forms that adjust the credits of an end user. Each form is in a collapsed `<details>` element, which works
// without JavaScript and makes stopping a cycle take two clicks.

import { html } from 'ghtml';
import type { Cycle } from '../../../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT } from '../../../ledger/instant.ts';
import { NOTE_LENGTH_MAX } from '../../../ledger/posting.ts';
import { dayText, numberText } from '../../figures.ts';
import { type Field, type FormState, field, formError, idempotencyKeyInput } from '../form-field.ts';

export type Adjustment = 'add' | 'subtract' | 'start-cycle' | 'stop-cycle';

export interface AdjustForms {
  /** A refused form, which is shown again with its errors. */
  readonly refused: { readonly adjustment: Adjustment; readonly state: FormState } | null;
  readonly idempotencyKeys: Readonly<Record<Adjustment, string>>;
}

interface AdjustForm {
  readonly summary: string;
  readonly explanation: string;
  readonly fields: readonly Omit<Field, 'id'>[];
  readonly button: string;
  /** Shown on the next page if the form is accepted. */
  readonly notice: string;
}

const AMOUNT = { name: 'amount', label: 'Amount', isWholeNumber: true };
const INITIAL_DAYS = String(VALIDITY_DAYS_DEFAULT);
const VALIDITY = { name: 'validity_days', label: 'Valid for (days)', initial: INITIAL_DAYS, isWholeNumber: true };
const NOTE = { name: 'note', label: 'Note', isOptional: true, charactersMax: NOTE_LENGTH_MAX };

export const ADJUST_FORMS: Readonly<Record<Adjustment, AdjustForm>> = {
  add: {
    summary: 'Add credits',
    explanation: "One-time credits. They expire at the end of their validity and don't renew.",
    fields: [AMOUNT, VALIDITY, NOTE],
    button: 'Add',
    notice: 'Credits added.',
  },
  subtract: {
    summary: 'Subtract credits',
    explanation: 'Takes the oldest credits first. If the balance is too low, nothing is subtracted.',
    fields: [AMOUNT, NOTE],
    button: 'Subtract',
    notice: 'Credits subtracted.',
  },
  'start-cycle': {
    summary: 'Start a cycle',
    explanation: 'The cycle renews to the full amount at the end of each period, until you stop it.',
    fields: [AMOUNT, VALIDITY, NOTE],
    button: 'Start cycle',
    notice: 'Cycle started.',
  },
  'stop-cycle': {
    summary: 'Stop the cycle',
    explanation: "The cycle won't renew. Its remaining credits stay usable until it ends.",
    fields: [NOTE],
    button: 'Stop cycle',
    notice: 'Cycle stopped. Its remaining credits stay usable until it ends.',
  },
};

export const ADJUSTMENTS = Object.keys(ADJUST_FORMS) as readonly Adjustment[];

interface FormsView {
  readonly endUser: string;
  /** The active recurring cycle. It can be stopped, and no other cycle can be started while it is active. */
  readonly activeCycle: Cycle | null;
  readonly forms: AdjustForms;
}

export function adjustForms(view: FormsView): string {
  const { activeCycle, forms } = view;
  const isPossible = (adjustment: Adjustment) => {
    if (adjustment === forms.refused?.adjustment) return true;
    if (adjustment === 'stop-cycle') return activeCycle !== null;
    return adjustment !== 'start-cycle' || activeCycle === null;
  };
  return html`<section class="card adjust" aria-labelledby="adjust-heading">
<h2 id="adjust-heading">Adjust credits</h2>
!${ADJUSTMENTS.filter(isPossible).map((adjustment) => adjustForm(adjustment, view))}
</section>`;
}

function adjustForm(adjustment: Adjustment, { endUser, activeCycle, forms }: FormsView): string {
  const { summary, explanation, fields, button } = ADJUST_FORMS[adjustment];
  const state = forms.refused?.adjustment === adjustment ? forms.refused.state : null;
  const text = adjustment === 'stop-cycle' && activeCycle !== null ? stopExplanation(activeCycle) : explanation;
  return html`<details class="action" name="adjust"!${state === null ? '' : ' open'}><summary>${summary}</summary>
<form class="form" method="post" action="/console/end-users/${endUser}/${adjustment}" novalidate>
!${formError(state)}
<p class="muted small">${text}</p>
!${fields.map((one) => field({ ...one, id: `${adjustment}-${one.name}` }, state))}
!${idempotencyKeyInput(forms.idempotencyKeys[adjustment])}
<button class="button!${adjustment === 'stop-cycle' ? ' danger' : ''}" type="submit">${button}</button>
</form>
</details>`;
}

function stopExplanation({ remaining, amount, end }: Cycle): string {
  return `The cycle won't renew. The remaining ${numberText(remaining)} of ${numberText(amount)} credits stay usable until ${dayText(end)}.`;
}
