// Fields of a form: a label, the field, and what is wrong with it, told to whoever does not see it as well. A password
// never comes back in a page.

import { html } from 'ghtml';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: 'text' | 'email' | 'password';
  /** For the browser, which then offers what it knows. */
  readonly autocomplete: string;
  readonly value?: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  /** Where one goes on typing, beside a field with an error. */
  readonly hasFocus?: boolean;
}

export function field({ name, label, type, autocomplete, value = '', hint, error, hasFocus }: Field): string {
  const describedBy = [hint && `${name}-hint`, error && `${name}-error`].filter(Boolean).join(' ');
  const described = describedBy === '' ? '' : html` aria-describedby="${describedBy}"`;
  const invalid = error === undefined ? '' : ' aria-invalid="true"';
  const focus = error !== undefined || hasFocus ? ' autofocus' : '';
  return html`<div class="field">
<label for="${name}">${label}</label>
!${hint === undefined ? '' : html`<p class="muted" id="${name}-hint">${hint}</p>`}
<input class="input" id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${type === 'password' ? '' : value}" required!${described}!${invalid}!${focus}>
!${error === undefined ? '' : html`<p class="error" id="${name}-error">${error}</p>`}
</div>`;
}

export const emailField = (value: string, error?: string): string =>
  field({ name: 'email', label: 'Email', type: 'email', autocomplete: 'username', value, error });

export const newPasswordField = (label: string, error?: string): string =>
  field({
    name: 'password',
    label,
    type: 'password',
    autocomplete: 'new-password',
    hint: '15 characters or more. A few words in a row are a good one.',
    error,
  });

/** What concerns the form as a whole. */
export function formError(text: string | undefined): string {
  return text === undefined ? '' : html`<p class="error" id="form-error" role="alert">${text}</p>`;
}
