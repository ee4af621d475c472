// The form by which an account is made, and what stands in its place where nobody may make one.

import { html } from 'ghtml';
import { emailField, field, formError, newPasswordField } from './fields.ts';

export interface SignUpForm {
  readonly email: string;
  readonly name: string;
  readonly errors: Readonly<Partial<Record<'email' | 'password' | 'name' | 'form', string>>>;
}

export function signUpForm({ email, name, errors }: SignUpForm): string {
  return html`<form class="form card" method="post" action="/console/sign-up" novalidate>
!${formError(errors.form)}
!${field({
    name: 'name',
    label: 'Name',
    type: 'text',
    autocomplete: 'organization',
    value: name,
    hint: 'Of your business or product. The account is called so.',
    error: errors.name,
  })}
!${emailField(email, errors.email)}
!${newPasswordField('Password', errors.password)}
<button class="button">Sign up</button>
</form>
<p class="muted">You have an account already? <a href="/console/sign-in">Sign in</a></p>`;
}

export function signUpClosed(): string {
  return html`<section class="card"><p>Signing up is closed here. Ask an owner of an account for an invitation.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`;
}
