// The forms that adjust an end user's credits, each in a collapsed `<details>` element.

import { html } from 'ghtml';
import { type Cycle, renews, spendable } from '../../../ledger/cycle.ts';
import { INSTANT_MAX, VALIDITY_DAYS_DEFAULT } from '../../../ledger/instant.ts';
import { day, numberText } from '../../figures.ts';
import { type FormState, field, formError, idempotencyKeyInput, selectField } from '../form-field.ts';
import { creditsEveryText } from './cycle-names.ts';

export type Adjustment = 'add' | 'subtract' | 'start-cycle' | 'stop-cycle';

export interface AdjustForms {
  /** The refused form, which is shown again with its errors. */
  readonly refused: { readonly adjustment: Adjustment; readonly state: FormState } | null;
  readonly idempotencyKeys: Readonly<Record<Adjustment, string>>;
}

interface FieldContext {
  readonly adjustment: Adjustment;
  readonly activeCycle: Cycle | null;
  readonly state: FormState | null;
}

interface AdjustForm {
  readonly summary: string;
  readonly explanation: string;
  readonly fields: readonly ((context: FieldContext) => string)[];
  readonly button: string;
}

const FORMS: Readonly<Record<Adjustment | 'change-plan', AdjustForm>> = {
  add: {
    summary: 'Add credits',
    explanation: "Adds credits once. The credits expire when their validity ends, and don't renew.",
    fields: [amountField, validityField, noteField],
    button: 'Add',
  },
  subtract: {
    summary: 'Subtract credits',
    explanation: 'Subtracts the oldest credits first. If the balance is too low, nothing is subtracted.',
    fields: [amountField, noteField],
    button: 'Subtract',
  },
  'start-cycle': {
    summary: 'Start a cycle',
    explanation:
      'Until you stop the cycle, it renews at the end of each period. Each period begins with the full amount.',
    fields: [amountField, intervalField, rolloverField, noteField],
    button: 'Start cycle',
  },
  'change-plan': {
    summary: 'Change the plan',
    explanation: 'The next page shows the effect on the balance. Nothing changes until you confirm.',
    fields: [amountField, intervalField, rolloverField, startField, noteField],
    button: 'Preview change',
  },
  'stop-cycle': {
    summary: 'Stop the cycle',
    explanation: "The cycle won't renew. Its remaining credits stay usable until the end of the period.",
    fields: [noteField],
    button: 'Stop cycle',
  },
};

export const ADJUSTMENTS: readonly Adjustment[] = ['add', 'subtract', 'start-cycle', 'stop-cycle'];

export const NOTICES: Readonly<Record<Adjustment, string>> = {
  add: 'Credits added.',
  subtract: 'Credits subtracted.',
  'start-cycle': 'Cycle started.',
  'stop-cycle': 'Cycle stopped. Its remaining credits stay usable until the end of the period.',
};

interface FormsView {
  readonly endUser: string;
  readonly activeCycle: Cycle | null;
  readonly forms: AdjustForms;
}

export function adjustForms(view: FormsView): string {
  const { activeCycle, forms } = view;
  const isPossible = (adjustment: Adjustment) =>
    adjustment !== 'stop-cycle' || activeCycle !== null || forms.refused?.adjustment === adjustment;
  return html`<section class="card adjust" aria-labelledby="adjust-heading">
<h2 id="adjust-heading">Adjust credits</h2>
!${ADJUSTMENTS.filter(isPossible).map((adjustment) => adjustForm(adjustment, view))}
</section>`;
}

function adjustForm(adjustment: Adjustment, { endUser, activeCycle, forms }: FormsView): string {
  const state = forms.refused?.adjustment === adjustment ? forms.refused.state : null;
  const isChange = adjustment === 'start-cycle' && changesPlan(activeCycle, state);
  const { summary, explanation, fields, button } = FORMS[isChange ? 'change-plan' : adjustment];
  const text = activeCycle === null ? explanation : explanationOf(isChange ? 'change-plan' : adjustment, activeCycle);
  return html`<details class="action" name="adjust"!${state === null ? '' : ' open'}><summary>${summary}</summary>
<form class="form" method="post" action="/console/end-users/${endUser}/${adjustment}" novalidate>
!${formError(state)}
<p class="muted small">!${text}</p>
!${fields.map((fieldOf) => fieldOf({ adjustment, activeCycle, state }))}
!${idempotencyKeyInput(forms.idempotencyKeys[adjustment])}
<button class="button!${adjustment === 'stop-cycle' ? ' danger' : ''}" type="submit">${button}</button>
</form>
</details>`;
}

/**
 * Whether the form has the field that sets when the new plan starts. A new form has this field if a cycle is active. A
 * refused form keeps its fields, so that the user can send the same form again after an unknown outcome. The field is
 * added to a refused form only if the form was refused because a cycle was active.
 */
function changesPlan(activeCycle: Cycle | null, state: FormState | null): boolean {
  return state === null ? activeCycle !== null : Boolean(state.values.on_active || state.errors.on_active);
}

/** Returns trusted HTML. */
function explanationOf(form: keyof typeof FORMS, cycle: Cycle): string {
  const { explanation } = FORMS[form];
  const { end, next } = cycle;
  if (form === 'stop-cycle') {
    const future = end === INSTANT_MAX ? 'never expire' : html`stay usable until !${day(end)}`;
    const canceled = next === null ? '' : ` This also cancels the scheduled change to ${creditsEveryText(next.plan)}.`;
    return html`The cycle won't renew. The ${remainingText(cycle)} !${future}.${canceled}`;
  }
  return form === 'change-plan' && next !== null
    ? html`!${explanation} The new plan replaces the change that is scheduled for !${day(end)}.`
    : explanation;
}

/** Leaves out held credits, as the balance does. */
function remainingText(cycle: Cycle): string {
  return `remaining credits (${numberText(spendable(cycle))} of ${numberText(cycle.amount)})`;
}

function amountField({ adjustment, state }: FieldContext): string {
  return field({ id: `${adjustment}-amount`, name: 'amount', label: 'Amount', isWholeNumber: true }, state);
}

function validityField(context: FieldContext): string {
  return durationField('Valid for', VALIDITY_DAYS_DEFAULT, 'days', context);
}

function intervalField(context: FieldContext): string {
  const { validityMonths, validityDays } = context.activeCycle?.plan ?? {};
  const count = validityMonths ?? validityDays ?? VALIDITY_DAYS_DEFAULT;
  return durationField('Renews every', count, validityMonths ? 'months' : 'days', context);
}

function durationField(
  label: string,
  count: number,
  initialUnit: 'days' | 'months',
  { adjustment, state }: FieldContext,
): string {
  const choices = (['days', 'months'] as const).map((unit) => [unit, unit] as const);
  const unit = { id: `${adjustment}-unit`, name: 'unit', label: `${label}: unit`, choices, initial: initialUnit };
  const id = `${adjustment}-validity`;
  return field({ id, name: 'validity', label, initial: String(count), isWholeNumber: true, unit }, state);
}

function rolloverField({ adjustment, activeCycle, state }: FieldContext): string {
  const { rolloverMax = 0 } = activeCycle?.plan ?? {};
  const named = {
    id: `${adjustment}-rollover_max`,
    name: 'rollover_max',
    label: 'Maximum unused credits to roll over',
    hint: 'The maximum number of unused credits to keep at each renewal. If this field is empty, all unused credits expire.',
  };
  const initial = rolloverMax > 0 ? String(rolloverMax) : '';
  return field({ ...named, initial, isOptional: true, isWholeNumber: true }, state);
}

function startField({ adjustment, activeCycle, state }: FieldContext): string {
  const choices = [
    ['at_period_end', 'When the period ends'],
    ['replace', 'Now'],
  ] as const;
  const canWait = activeCycle === null || renews(activeCycle);
  const hint = activeCycle === null ? {} : { hint: startHint(activeCycle) };
  const named = { id: `${adjustment}-on_active`, name: 'on_active', label: 'Starts', ...hint };
  return selectField({ ...named, choices: canWait ? choices : choices.slice(1) }, state);
}

/** Returns trusted HTML. */
function startHint(cycle: Cycle): string {
  const left = `the ${remainingText(cycle)} stay usable`;
  if (!renews(cycle)) return `The new plan replaces the current cycle; ${left}.`;
  return html`The current period ends on !${day(cycle.end)}. If the new plan starts now, ${left} until that date.`;
}

function noteField({ adjustment, state }: FieldContext): string {
  const named = { id: `${adjustment}-note`, name: 'note', label: 'Note' };
  return field({ ...named, isOptional: true }, state);
}
