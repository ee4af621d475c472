// The pages on which users enter an email address or a password, and those that take their place.

import { html } from 'ghtml';
import type { Invitation } from '../identity/members.ts';
import { type PageContext, page } from '../layout.ts';
import { emailField, type FormState, field, formError, newPasswordField, passwordField } from './form-field.ts';

export interface SignInView {
  readonly state: FormState | null;
  readonly notice: string | null;
  readonly isSignUpOpen: boolean;
  /** Whether a password can be reset by mail. */
  readonly hasMail: boolean;
}

export function signInPage({ state, notice, isSignUpOpen, hasMail }: SignInView): string {
  const body = html`<form class="form card" method="post" action="/console/sign-in" novalidate>
!${formError(state)}
!${emailField(state)}
!${passwordField(state, { hasFocus: state !== null })}
<button class="button">Sign in</button>
</form>
<p class="muted">!${hasMail ? '<a href="/console/forgot-password">Forgot your password?</a>' : 'Forgot your password? Ask your administrator to reset it.'}</p>
!${isSignUpOpen ? '<p class="muted">New to Scrip? <a href="/console/sign-up">Sign up</a></p>' : ''}`;
  return page({ title: 'Sign in', viewer: null, notice, body });
}

export function httpsRequiredPage(): string {
  return signedOutPage(
    'HTTPS required',
    html`<p class="error" role="alert">Over plain HTTP, others on the network could read your password. Serve Scrip over HTTPS and set PUBLIC_URL to its
address. On the machine that runs Scrip, you can use http://localhost.</p>`,
  );
}

export function signUpPage(state: FormState | null): string {
  const accountName = { id: 'name', name: 'name', label: 'Account name', autocomplete: 'organization' };
  return signedOutPage(
    'Sign up',
    html`<form class="form card" method="post" action="/console/sign-up" novalidate>
!${field({ ...accountName, hint: 'Your business or product.' }, state)}
!${emailField(state)}
!${newPasswordField('Password', state)}
<button class="button">Sign up</button>
</form>
<p class="muted">Already have an account? <a href="/console/sign-in">Sign in</a></p>`,
  );
}

export function signUpClosedPage(): string {
  return signedOutPage(
    'Sign-up is closed',
    `<section class="card"><p>New accounts can't be created on this server. Ask an account owner to invite you.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`,
  );
}

export interface JoinView extends Invitation {
  /** Of the invitation link. */
  readonly token: string;
  readonly state: FormState | null;
}

export function joinPage({ token, accountName, role, state }: JoinView): string {
  return signedOutPage(
    `Join ${accountName}`,
    html`<form class="form card" method="post" action="/console/join/${token}" novalidate>
<p>You are invited to join <strong>${accountName}</strong> as ${role === 'owner' ? 'an owner' : 'a member'}. Choose the email address and
password you'll sign in with. An address can belong to only one account.</p>
!${emailField(state)}
!${newPasswordField('Password', state)}
<button class="button">Join</button>
</form>`,
  );
}

export function changePasswordPage(state: FormState | null, context: PageContext): string {
  const current = { id: 'current', name: 'current', label: 'Current password', autocomplete: 'current-password' };
  const body = html`<form class="form card" method="post" action="/console/password" novalidate>
!${field({ ...current, type: 'password' }, state)}
!${newPasswordField('New password', state)}
<button class="button">Change password</button>
</form>
<p class="muted">You will be signed out everywhere else.</p>`;
  return page({ title: 'Change password', ...context, body });
}

export function forgotPasswordPage(state: FormState | null): string {
  return signedOutPage(
    'Reset your password',
    html`<form class="form card" method="post" action="/console/forgot-password" novalidate>
<p>Enter your email address. We'll send you a link to choose a new password.</p>
!${emailField(state)}
<button class="button">Send reset link</button>
</form>
<p class="muted"><a href="/console/sign-in">Back to sign-in</a></p>`,
  );
}

export interface MailedLinkView {
  readonly token: string;
  /** The address that the link was sent to. */
  readonly email: string;
  readonly state: FormState | null;
}

export function resetPasswordPage({ token, email, state }: MailedLinkView): string {
  return signedOutPage(
    'Choose a new password',
    html`<form class="form card" method="post" action="/console/reset-password/${token}" novalidate>
<p>For ${email}. You will be signed out everywhere.</p>
!${newPasswordField('New password', state)}
<button class="button">Reset password</button>
</form>`,
  );
}

export function confirmEmailPage({ token, email, state }: MailedLinkView): string {
  return signedOutPage(
    'Confirm your email address',
    html`<form class="form card" method="post" action="/console/verify/${token}" novalidate>
<p>Enter the password you chose when you signed up with ${email}. If you didn't sign up, close this page.</p>
!${formError(state)}
!${passwordField(state)}
<button class="button">Confirm email address</button>
</form>`,
  );
}

export function invalidLinkPage(): string {
  return signedOutPage(
    'This link no longer works',
    `<section class="card"><p>It has already been used, has expired, or is incomplete. If you've just used it, sign in.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`,
  );
}

function signedOutPage(title: string, body: string): string {
  return page({ title, viewer: null, body });
}
