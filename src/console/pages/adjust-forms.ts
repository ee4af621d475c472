// The forms that change the credits of an end user: add, subtract, start a cycle, stop it. Each opens by itself, so that
// it works without JavaScript, and stopping asks a second time by that.

import { html } from 'ghtml';
import type { Cycle } from '../../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT } from '../../ledger/instant.ts';
import { dayText, figure } from '../figures.ts';
import { type Entered, type Field, field, formError, onceInput } from './form-field.ts';

export type Change = 'add' | 'subtract' | 'start-cycle' | 'stop-cycle';

export const CHANGES: readonly Change[] = ['add', 'subtract', 'start-cycle', 'stop-cycle'];

/** As many as the ledger keeps. */
export const NOTE_CHARACTERS_MAX = 500;

export interface AdjustForms {
  /** The form that was sent and refused. */
  readonly refused: { readonly change: Change; readonly entered: Entered } | null;
  /** For each form a value that is done once. */
  readonly once: Readonly<Record<Change, string>>;
}

interface Wording {
  readonly open: string;
  readonly explanation: string;
  readonly press: string;
  readonly isDanger: boolean;
  readonly hasAmount: boolean;
  readonly hasValidity: boolean;
}

const FORMS: Readonly<Record<Change, Wording>> = {
  add: {
    open: 'Add credits',
    explanation: 'They expire at the end of their validity and are not renewed.',
    press: 'Add',
    isDanger: false,
    hasAmount: true,
    hasValidity: true,
  },
  subtract: {
    open: 'Subtract credits',
    explanation: 'The oldest go first. When the balance does not cover it, nothing is subtracted.',
    press: 'Subtract',
    isDanger: false,
    hasAmount: true,
    hasValidity: false,
  },
  'start-cycle': {
    open: 'Start a cycle',
    explanation: 'Renews to the full amount at the end of each validity until it is stopped.',
    press: 'Start',
    isDanger: false,
    hasAmount: true,
    hasValidity: true,
  },
  'stop-cycle': {
    open: 'Stop the cycle',
    explanation: '',
    press: 'Stop the cycle now',
    isDanger: true,
    hasAmount: false,
    hasValidity: false,
  },
};

/** @param active the cycle that renews, which can be stopped; while there is one, no other can be started */
export function adjustForms(endUser: string, active: Cycle | null, forms: AdjustForms): string {
  const offered = CHANGES.filter((change) => {
    if (change === forms.refused?.change) return true;
    return change === 'stop-cycle' ? active !== null : change === 'start-cycle' ? active === null : true;
  });
  return html`<section class="card adjust" aria-labelledby="adjust-heading">
<h2 id="adjust-heading">Adjust</h2>
!${offered.map((change) => formOf(change, { endUser, active, forms }))}
</section>`;
}

interface Subject {
  readonly endUser: string;
  readonly active: Cycle | null;
  readonly forms: AdjustForms;
}

function formOf(change: Change, { endUser, active, forms }: Subject): string {
  const { open, explanation, press, isDanger, hasAmount, hasValidity } = FORMS[change];
  const entered = forms.refused?.change === change ? forms.refused.entered : null;
  const text = change === 'stop-cycle' && active !== null ? stopText(active) : explanation;
  const wanted: Field[] = [];
  if (hasAmount) wanted.push({ id: `${change}-amount`, name: 'amount', label: 'Amount', isWholeNumber: true });
  if (hasValidity) wanted.push(validityField(change));
  wanted.push({
    id: `${change}-note`,
    name: 'note',
    label: 'Note',
    isOptional: true,
    charactersMax: NOTE_CHARACTERS_MAX,
  });
  return html`<details class="action" name="adjust"!${entered === null ? '' : ' open'}><summary>${open}</summary>
<form class="form" method="post" action="/console/end-users/${endUser}/${change}" novalidate>
!${formError(entered)}
<p class="muted small">${text}</p>
!${wanted.map((one) => field(one, entered))}
!${onceInput(forms.once[change])}
<button class="button!${isDanger ? ' danger' : ''}" type="submit">${press}</button>
</form>
</details>`;
}

function validityField(change: Change): Field {
  return {
    id: `${change}-validity`,
    name: 'validity_days',
    label: 'Validity in days',
    initial: String(VALIDITY_DAYS_DEFAULT),
    isWholeNumber: true,
  };
}

function stopText({ remaining, amount, end }: Cycle): string {
  return `It will not be renewed. The ${figure(remaining)} of ${figure(amount)} credits that are left stay usable until ${dayText(end)}.`;
}
