// The account page: the account's name, and the viewer's own password, sessions and color scheme.

import { html } from 'ghtml';
import { day, moment } from '../figures.ts';
import type { ListedSession } from '../identity/sessions.ts';
import { type Page, type PageContext, page, THEMES, type Theme } from '../layout.ts';
import { type FormState, field, newPasswordField } from './form-field.ts';
import { table } from './lists.ts';

type AccountForm = 'name' | 'password';

export interface AccountView {
  /** Most recently used first. */
  readonly sessions: readonly ListedSession[];
  readonly theme: Theme;
  /** The refused form with its errors; null if no form was refused. */
  readonly refused: { readonly form: AccountForm; readonly state: FormState } | null;
}

const THEME_LABELS: Readonly<Record<Theme, string>> = { system: 'Same as system', light: 'Light', dark: 'Dark' };

export function accountPage(view: AccountView, { viewer, notice }: PageContext): string {
  const stateOf = (form: AccountForm) => (view.refused?.form === form ? view.refused.state : null);
  const body = html`!${viewer?.role === 'owner' ? nameForm(viewer, stateOf('name')) : ''}
!${passwordForm(stateOf('password'))}
!${sessionList(view.sessions)}
!${themeForm(view.theme)}`;
  return page({ title: 'Account', viewer, notice, current: 'account', body });
}

function nameForm({ accountName }: NonNullable<Page['viewer']>, state: FormState | null): string {
  const hint =
    'Members see this name. A new name does not affect API keys or end users. Commands that name the account, such as <code>scrip key create --account NAME</code>, need the new name.';
  const name = { id: 'name', name: 'name', label: 'Account name', initial: accountName, autocomplete: 'organization' };
  return html`<section class="card narrow">
<h2>Name</h2>
<form class="form" method="post" action="/console/account/name" novalidate>
!${field({ ...name, hint }, state)}
<button class="button">Rename account</button>
</form>
</section>`;
}

function passwordForm(state: FormState | null): string {
  const current = { id: 'current', name: 'current', label: 'Current password', autocomplete: 'current-password' };
  return html`<section class="card narrow">
<h2>Password</h2>
<form class="form" method="post" action="/console/account/password" novalidate>
!${field({ ...current, type: 'password' }, state)}
!${newPasswordField('New password', state)}
<p class="muted small">Changing your password signs you out everywhere else.</p>
<button class="button">Change password</button>
</form>
</section>`;
}

function sessionList(sessions: readonly ListedSession[]): string {
  const rows = sessions.map(
    ({ id, browser, createdAt, usedAt, isCurrent }) => html`<tr role="row">
<td role="cell" data-label="Browser"><span id="session-${id}">${browser}</span>!${isCurrent ? ' <span class="muted">(this session)</span>' : ''}</td>
<td role="cell" data-label="Signed in">!${day(createdAt)}</td>
<td role="cell" data-label="Last used" class="when" id="used-${id}">!${moment(usedAt)}</td>
<td role="cell" class="end">!${isCurrent ? '' : html`<form method="post" action="/console/account/sessions/end"><input type="hidden" name="session" value="${id}"><button class="button secondary small" type="submit" aria-describedby="session-${id} used-${id}">Sign out</button></form>`}</td>
</tr>`,
  );
  const columns = [['Browser'], ['Signed in (UTC)'], ['Last used (UTC)'], ['Action', 'end']] as const;
  const endAll =
    '<form method="post" action="/console/account/sessions/end"><button class="button secondary" type="submit">Sign out everywhere else</button></form>';
  return html`<section class="card">
<h2>Your sessions</h2>
!${table({ label: 'Your sessions', columns, rows })}
!${sessions.length > 1 ? endAll : ''}
</section>`;
}

function themeForm(theme: Theme): string {
  const options = THEMES.map(
    (one) => html`<option value="${one}"!${one === theme ? ' selected' : ''}>${THEME_LABELS[one]}</option>`,
  );
  return html`<section class="card narrow">
<h2>Appearance</h2>
<form class="form pair" method="post" action="/console/account/theme">
<div class="field"><label for="theme">Colors</label>
<select class="input" id="theme" name="theme" aria-describedby="theme-hint">!${options}</select>
<p class="hint" id="theme-hint">Applies to the console and the API reference in this browser.</p></div>
<button class="button secondary" type="submit">Apply</button>
</form>
</section>`;
}
