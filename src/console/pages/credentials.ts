// The pages for signing in, signing up, joining an account, and resetting a password.

import { html } from 'ghtml';
import type { Invitation } from '../identity/members.ts';
import { type Page, page } from '../layout.ts';
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
    html`<p class="error" role="alert">Over plain HTTP, others on the network could read your password. Serve Scrip over HTTPS and set PUBLIC_URL to the
HTTPS address. On the machine that runs Scrip, you can use http://localhost.</p>`,
  );
}

/** @param claimed the name of the existing account that the new user will own; null if sign-up creates an account */
export function signUpPage(claimed: string | null, state: FormState | null): string {
  const accountName = { id: 'name', name: 'name', label: 'Account name', autocomplete: 'organization' };
  const hint = `The name of your business or product.${claimed === null ? '' : ' Commands that name the account, such as <code>scrip key create --account NAME</code>, then need the new name, which the Account page shows.'}`;
  const lede =
    claimed === null
      ? ''
      : html`<p>The account <strong>${claimed}</strong> has no members yet. When you sign up, you become the owner of this account and get access to its API keys and end users.</p>`;
  return signedOutPage(
    'Sign up',
    html`<form class="form card" method="post" action="/console/sign-up" novalidate>
!${lede}
!${field({ ...accountName, initial: claimed ?? '', hint }, state)}
!${emailField(state)}
!${newPasswordField('Password', state)}
<button class="button">Sign up</button>
</form>
<p class="muted">Already signed up? <a href="/console/sign-in">Sign in</a></p>`,
  );
}

/** @param isWaiting whether the ledger's first account has no members yet */
export function signUpClosedPage(isWaiting: boolean): string {
  const text = isWaiting
    ? 'No one has signed up on this server yet. To be the first, open the link that Scrip printed when it started, or run <code>scrip invite --account NAME</code> to print a new link.'
    : "New accounts can't be created on this server. Ask an account owner to invite you.";
  return signedOutPage(
    'Sign-up is closed',
    `<section class="card"><p>${text}</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`,
  );
}

interface JoinView extends Invitation {
  readonly token: string;
  readonly state: FormState | null;
}

export function joinPage({ token, accountName, role, state }: JoinView): string {
  return signedOutPage(
    `Join ${accountName}`,
    html`<form class="form card" method="post" action="/console/join/${token}" novalidate>
<p>You've been invited to join <strong>${accountName}</strong> as ${role === 'owner' ? 'an owner' : 'a member'}. Choose the email address and
password you'll sign in with. An address can belong to only one account.</p>
!${formError(state)}
!${emailField(state)}
!${newPasswordField('Password', state)}
<button class="button">Join</button>
</form>`,
  );
}

/** Shown if a signed-in user opens an invitation, because a user can belong to only one account. */
export function cannotJoinPage(
  { accountName }: Invitation,
  viewer: NonNullable<Page['viewer']>,
  isMember: boolean,
): string {
  const body = html`<section class="card narrow">
<p>!${
    isMember
      ? html`You are signed in as ${viewer.email} and are already a member of <strong>${accountName}</strong>.`
      : html`You are signed in as ${viewer.email}, a member of <strong>${viewer.accountName}</strong>. An address can belong to only one account. To join <strong>${accountName}</strong> with another address, sign out and open the link again.`
  }</p>
<p class="muted">The invitation stays valid.</p>
<div class="buttons"><a class="button" href="/console/overview">Go to overview</a>
<form method="post" action="/console/sign-out"><button class="button secondary" type="submit">Sign out</button></form></div>
</section>`;
  return page({ title: `Join ${accountName}`, viewer, body });
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

interface MailedLinkView {
  readonly token: string;
  /** The email address to which the link was sent. */
  readonly email: string;
  readonly state: FormState | null;
}

export function resetPasswordPage({ token, email, state }: MailedLinkView): string {
  return signedOutPage(
    'Choose a new password',
    html`<form class="form card" method="post" action="/console/reset-password/${token}" novalidate>
<p>This form changes the password of ${email}. You will be signed out everywhere.</p>
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

export function addressTakenPage(): string {
  return signedOutPage(
    'This email address is already in use',
    `<section class="card"><p>Nothing was changed. Sign in, or use another email address.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`,
  );
}

export function invalidLinkPage(): string {
  return signedOutPage(
    'This link no longer works',
    `<section class="card"><p>The link has already been used or withdrawn, has expired, or is incomplete. If you've just used it, sign in. Otherwise, request a new link.</p>
<p><a href="/console/sign-in">Sign in</a></p></section>`,
  );
}

function signedOutPage(title: string, body: string): string {
  return page({ title, viewer: null, body });
}
