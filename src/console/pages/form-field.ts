// A field of a form with its label, its hint and what is wrong with it, tied together for screen readers. What was
// entered comes back with what is wrong, so that nobody types twice.

import { html } from 'ghtml';

/** What was entered and refused, by field; `form` is about all of it. */
export interface Entered {
  readonly values: Readonly<Record<string, string>>;
  readonly errors: Readonly<Record<string, string>>;
}

export interface Field {
  /** Unique on its page. */
  readonly id: string;
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** What stands in it when nothing was entered. */
  readonly initial?: string;
  readonly isOptional?: boolean;
  readonly isWholeNumber?: boolean;
  readonly charactersMax?: number;
}

/** The name of what is wrong with a form as a whole. */
export const WHOLE_FORM = 'form';

export function field(wanted: Field, entered: Entered | null): string {
  const { id, name, label, hint, initial = '' } = wanted;
  const error = entered?.errors[name];
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return html`<div class="field">
<label for="${id}">${label}!${wanted.isOptional ? ' <span class="muted">(optional)</span>' : ''}</label>
<input class="input" id="${id}" name="${name}" type="text" value="${entered?.values[name] ?? initial}" autocomplete="off"!${attributes(wanted)}!${describedBy ? html` aria-describedby="${describedBy}"` : ''}!${error ? ' aria-invalid="true" autofocus' : ''}>
!${error ? html`<p class="error" id="${id}-error">${error}</p>` : ''}
!${hint ? html`<p class="hint" id="${id}-hint">${hint}</p>` : ''}
</div>`;
}

/** What is wrong with the form as a whole. */
export function formError(entered: Entered | null): string {
  const error = entered?.errors[WHOLE_FORM];
  return error ? html`<p class="error" role="alert">${error}</p>` : '';
}

/** A value that the ledger or the key store acts on once: pressing twice does it once. */
export function onceInput(once: string): string {
  return html`<input type="hidden" name="once" value="${once}">`;
}

function attributes({ isOptional, isWholeNumber, charactersMax }: Field): string {
  return [
    isOptional ? '' : ' required',
    isWholeNumber ? ' inputmode="numeric"' : '',
    charactersMax === undefined ? '' : ` maxlength="${charactersMax}"`,
  ].join('');
}
