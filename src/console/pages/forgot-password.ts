// The forms for who cannot come in: asking for a link, setting a password with it, and confirming an address.

import { html } from 'ghtml';
import { emailField, field, formError, newPasswordField } from './fields.ts';

export function forgotPasswordForm({ email, error }: { readonly email: string; readonly error?: string }): string {
  return html`<form class="form card" method="post" action="/console/forgot-password" novalidate>
!${emailField(email, error)}
<button class="button">Send a link</button>
</form>
<p class="muted"><a href="/console/sign-in">Sign in</a></p>`;
}

export interface LinkForm {
  /** Of the link, which is where the form goes. */
  readonly token: string;
  readonly email: string;
  readonly error?: string;
}

export function resetPasswordForm({ token, email, error }: LinkForm): string {
  return html`<form class="form card" method="post" action="/console/reset-password/${token}" novalidate>
<p>A new password for ${email}. All sessions end with it.</p>
!${newPasswordField('Password', error)}
<button class="button">Set password</button>
</form>`;
}

export function verifyForm({ token, email, error }: LinkForm): string {
  return html`<form class="form card" method="post" action="/console/verify/${token}" novalidate>
<p>Enter the password that you chose when you signed up with ${email}. If you did not, close this page.</p>
!${formError(error)}
!${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' })}
<button class="button">Confirm address</button>
</form>`;
}

export function deadLink(): string {
  return html`<section class="card"><p>This link was used already, is too old, or was not copied whole. If it was you who has just used it, sign in.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`;
}
