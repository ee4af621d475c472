// The form by which somebody who was invited becomes a member of an account.

import { html } from 'ghtml';
import { emailField, newPasswordField } from './fields.ts';

export interface JoinForm {
  /** Of the link, which is where the form goes. */
  readonly token: string;
  readonly accountName: string;
  readonly role: 'owner' | 'member';
  readonly email: string;
  readonly errors: Readonly<Partial<Record<'email' | 'password', string>>>;
}

export function joinForm({ token, accountName, role, email, errors }: JoinForm): string {
  return html`<form class="form card" method="post" action="/console/join/${token}" novalidate>
<p>You are invited to <strong>${accountName}</strong>, as ${role === 'owner' ? 'an owner' : 'a member'}. An address that
belongs to another account cannot join this one.</p>
!${emailField(email, errors.email)}
!${newPasswordField('Password', errors.password)}
<button class="button">Join</button>
</form>`;
}
