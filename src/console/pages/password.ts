// The form by which somebody who is signed in changes the password.

import { html } from 'ghtml';
import { field, newPasswordField } from './fields.ts';

export interface PasswordForm {
  readonly errors: Readonly<Partial<Record<'current' | 'password', string>>>;
}

export function passwordForm({ errors }: PasswordForm): string {
  return html`<form class="form card" method="post" action="/console/password" novalidate>
!${field({
    name: 'current',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    error: errors.current,
  })}
!${newPasswordField('New password', errors.password)}
<button class="button">Change password</button>
</form>
<p class="muted">All your other sessions end with it.</p>`;
}
