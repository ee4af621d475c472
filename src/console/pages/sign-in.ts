// The form by which one comes in, and the page that says why nobody can over plain HTTP.

import { html } from 'ghtml';
import { emailField, field, formError } from './fields.ts';

export interface SignInForm {
  readonly email: string;
  readonly error?: string;
  readonly maySignUp: boolean;
  /** Whether a forgotten password can be set anew by mail. */
  readonly hasMail: boolean;
}

export function signInForm({ email, error, maySignUp, hasMail }: SignInForm): string {
  return html`<form class="form card" method="post" action="/console/sign-in" novalidate>
!${formError(error)}
!${emailField(email)}
!${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', hasFocus: error !== undefined })}
<button class="button">Sign in</button>
</form>
<p class="muted">!${hasMail ? '<a href="/console/forgot-password">I forgot my password</a>' : 'Whoever runs this Scrip can set a forgotten password anew.'}</p>
!${maySignUp ? '<p class="muted">No account yet? <a href="/console/sign-up">Sign up</a></p>' : ''}`;
}

export function insecure(): string {
  return html`<p class="error" role="alert">Over plain HTTP, others on the way could read your password. Use https, and set PUBLIC_URL to the address
at which people reach Scrip; on the machine that runs it, use http://localhost.</p>`;
}
