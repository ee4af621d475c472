// Form fields with a label, an error and a hint. A refused form is shown again with the entered values, except
// passwords.

import { html } from 'ghtml';

/** The entered values and the errors of a form, by field name. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>;
  readonly errors: Readonly<Record<string, string | null>>;
}

export interface Field {
  /** Unique on its page. */
  readonly id: string;
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'email' | 'password' | 'date' | 'datetime-local';
  readonly autocomplete?: string;
  /** Trusted HTML. */
  readonly hint?: string;
  /** The value when the page is loaded; empty by default. */
  readonly initial?: string;
  readonly isOptional?: boolean;
  /** Whether the label of an optional field ends in "(optional)"; true by default. */
  readonly showsOptional?: boolean;
  readonly isWholeNumber?: boolean;
  /** Whether the field gets the focus because the form has an error that concerns no single field. */
  readonly hasFocus?: boolean;
  /** A select element for the unit, beside the input. */
  readonly unit?: Select;
}

export interface Select {
  readonly id: string;
  readonly name: string;
  readonly label: string;
  readonly choices: readonly (readonly [value: string, label: string])[];
  /** Trusted HTML. */
  readonly hint?: string;
  /** The value when the page is loaded; the first choice by default. */
  readonly initial?: string;
}

/** The key in `errors` for an error that concerns the whole form. */
export const WHOLE_FORM = 'form';
const FORM_ERROR_ID = 'form-error';

/** @param state null if the form has not been submitted */
export function field(options: Field, state: FormState | null): string {
  const { id, name, label, type = 'text', hint, initial = '', isOptional, showsOptional = true } = options;
  const error = state?.errors[name];
  const value = type === 'password' ? '' : (state?.values[name] ?? initial);
  const input = html`<input class="input" id="${id}" name="${name}" type="${type}" value="${value}"!${attributesOf(options, error)}>`;
  const { unit } = options;
  return html`<div class="field">
<label for="${id}">${label}!${isOptional && showsOptional ? ' <span class="muted">(optional)</span>' : ''}</label>
!${unit === undefined ? input : html`<div class="with-unit">!${input}!${select(unit, state, html` aria-label="${unit.label}"`)}</div>`}
!${messages(id, error, hint)}
</div>`;
}

export function selectField(options: Select, state: FormState | null): string {
  const { id, name, label, hint } = options;
  const error = state?.errors[name];
  return html`<div class="field">
<label for="${id}">${label}</label>
!${select(options, state, attributesOf({ ...options, isOptional: true, autocomplete: 'off' }, error))}
!${messages(id, error, hint)}
</div>`;
}

function select({ id, name, choices, initial }: Select, state: FormState | null, attributes: string): string {
  const chosen = state?.values[name] || initial;
  const options = choices.map(
    ([value, label]) => html`<option value="${value}"!${value === chosen ? ' selected' : ''}>${label}</option>`,
  );
  return html`<select class="input" id="${id}" name="${name}"!${attributes}>!${options}</select>`;
}

function messages(id: string, error: string | null | undefined, hint: string | undefined): string {
  return html`!${error ? html`<p class="error" id="${id}-error">${error}</p>` : ''}
!${hint ? html`<p class="hint" id="${id}-hint">!${hint}</p>` : ''}`;
}

function attributesOf(options: Omit<Field, 'unit'>, error: string | null | undefined): string {
  const { id, autocomplete = 'off', hint, isOptional, isWholeNumber, hasFocus } = options;
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`, hasFocus && FORM_ERROR_ID]
    .filter(Boolean)
    .join(' ');
  return [
    html` autocomplete="${autocomplete}"`,
    isOptional ? '' : ' required',
    isWholeNumber ? ' inputmode="numeric"' : '',
    describedBy ? html` aria-describedby="${describedBy}"` : '',
    error ? ' aria-invalid="true"' : '',
    error || hasFocus ? ' autofocus' : '',
  ].join('');
}

export function emailField(state: FormState | null): string {
  return field({ id: 'email', name: 'email', label: 'Email', type: 'email', autocomplete: 'username' }, state);
}

export function passwordField(state: FormState | null, options: { readonly hasFocus?: boolean } = {}): string {
  const autocomplete = 'current-password';
  return field(
    { id: 'password', name: 'password', label: 'Password', type: 'password', autocomplete, ...options },
    state,
  );
}

export function newPasswordField(label: string, state: FormState | null): string {
  const hint = 'At least 15 characters. A few random words work well.';
  const autocomplete = 'new-password';
  return field({ id: 'password', name: 'password', label, type: 'password', autocomplete, hint }, state);
}

/** A field with `hasFocus` refers to this error, so that screen readers announce it. */
export function formError(state: FormState | null): string {
  return alert(state?.errors[WHOLE_FORM], html` id="${FORM_ERROR_ID}"`);
}

/**
 * Returns the first error of a form, for a page that no longer shows the form. For example, the page of a fully
 * refunded transaction has no refund form.
 */
export function anyError(state: FormState | null): string {
  return alert(Object.values(state?.errors ?? {}).find((error) => error !== null));
}

function alert(error: string | null | undefined, attributes = ''): string {
  return error ? html`<p class="error" role="alert"!${attributes}>${error}</p>` : '';
}

/** A form that is submitted twice with the same key takes effect only once. */
export function idempotencyKeyInput(key: string): string {
  return html`<input type="hidden" name="idempotency_key" value="${key}">`;
}
