// The pages that list, create and revoke API keys. The secret appears only in the response to the form that created the
// key.

import { html } from 'ghtml';
import { SCOPES, type Scope } from '../../accounts/api-key.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { ActorTotal } from '../../store/console-store.ts';
import type { ListedKey } from '../../store/key-store.ts';
import { day, daysAgoText, moment, numberText, wrappableNumber } from '../figures.ts';
import { type Page, type PageContext, page } from '../layout.ts';
import { copyBox } from './copy-box.ts';
import { type FormState, field, formError, idempotencyKeyInput } from './form-field.ts';
import { type ActorView, actorLabel, table } from './lists.ts';

export interface KeyView extends Omit<ListedKey, 'account' | 'accountName' | 'createdBy' | 'revokedBy'> {
  readonly createdBy: ActorView;
  /** Null unless the key is revoked. */
  readonly revokedBy: ActorView | null;
  /**
   * The number of transactions made with the key in the last `usedDays` days, and the credits that these transactions
   * granted and spent.
   */
  readonly use: Pick<ActorTotal, 'granted' | 'spent' | 'transactions'>;
}

export interface ApiKeysView {
  readonly now: Instant;
  /** Active keys first, then revoked keys; newest first in each group. */
  readonly keys: readonly KeyView[];
  readonly usedDays: number;
  readonly state: FormState | null;
  readonly idempotencyKey: string;
}

const LOG_ROWS_MAX = 100;
const LOG_WITHOUT_SCROLLING_MAX = 12;

const SCOPE_LABELS: Readonly<Record<Scope, string>> = {
  write: 'write: read and change credits',
  read: 'read: read credits only',
};

export function apiKeysPage(view: ApiKeysView, context: PageContext): string {
  const body = html`<p class="muted lede">Your backend sends an API key with each request. Anyone who has a key can act for your account, so never put one in a browser or an app.</p>
!${newKeyForm(view)}
!${view.keys.length === 0 ? '<section class="card empty"><h2>No API keys yet</h2><p>Create a key to start using the API.</p></section>' : html`!${keyList(view)}!${keyLog(view)}`}
<section class="card">
<h2>Rotating a key</h2>
<p>Create a new key and switch your backend to it; both keys work in the meantime. When <em>Last used</em> shows that the old key is no longer in use, revoke it.</p>
</section>`;
  return page({ title: 'API keys', ...context, current: 'api-keys', body });
}

function newKeyForm({ state, idempotencyKey }: ApiKeysView): string {
  const selected = state?.values.scope ?? 'write';
  const options = SCOPES.toReversed().map(
    (scope) => html`<option value="${scope}"!${scope === selected ? ' selected' : ''}>${SCOPE_LABELS[scope]}</option>`,
  );
  const name = { id: 'key-name', name: 'name', label: 'Name' };
  return html`<section class="card">
<form class="form inline" method="post" action="/console/api-keys">
!${formError(state)}
!${field({ ...name, hint: 'Where you use the key, such as “Production backend”.' }, state)}
<div class="field"><label for="key-scope">Scope</label>
<select class="input" id="key-scope" name="scope">!${options}</select>
!${state?.errors.scope ? html`<p class="error">${state.errors.scope}</p>` : ''}</div>
!${idempotencyKeyInput(idempotencyKey)}
<button class="button" type="submit">Create key</button>
</form>
</section>`;
}

function keyList({ keys, now, usedDays }: ApiKeysView): string {
  const rows = keys.map(
    (key) => html`<tr role="row"!${key.revokedAt === null ? '' : ' class="revoked"'}>
<td role="cell" data-label="Name" class="name" id="key-${key.id}"><bdi class="strong">${key.name}</bdi> <span class="whole muted mono">${key.hint}</span></td>
<td role="cell" data-label="Scope">${key.scope}</td>
<td role="cell" data-label="Transactions" class="number">${numberText(key.use.transactions)}</td>
<td role="cell" data-label="Granted" class="number">!${wrappableNumber(key.use.granted)}</td>
<td role="cell" data-label="Spent" class="number">!${wrappableNumber(key.use.spent)}</td>
<td role="cell" data-label="Created" class="when">${daysAgoText(key.createdAt, now)}</td>
<td role="cell" data-label="Last used" class="when">${daysAgoText(key.lastUsedAt, now)}</td>
<td role="cell" class="end">!${statusOf(key)}</td>
</tr>`,
  );
  const columns = [
    ['Name'],
    ['Scope'],
    ['Transactions', 'number'],
    ['Granted', 'number'],
    ['Spent', 'number'],
    ['Created'],
    ['Last used'],
    ['Status', 'end'],
  ] as const;
  return html`<section class="card">
<h2>Keys</h2>
<p class="muted small">The <em>Transactions</em>, <em>Granted</em> and <em>Spent</em> columns cover the last ${usedDays} days (UTC).</p>
!${table({ label: 'Keys', columns, rows })}
</section>`;
}

function keyLog({ keys }: ApiKeysView): string {
  const events = keys.flatMap((key) => [
    { key, at: key.createdAt, what: 'Created', by: key.createdBy },
    ...(key.revokedAt === null || key.revokedBy === null
      ? []
      : [{ key, at: key.revokedAt, what: 'Revoked', by: key.revokedBy }]),
  ]);
  const rows = events
    .sort((a, b) => b.at - a.at || b.key.id - a.key.id)
    .slice(0, LOG_ROWS_MAX)
    .map(
      ({ key, at, what, by }) => html`<tr role="row">
<td role="cell" data-label="Time" class="when">!${moment(at)}</td>
<td role="cell" data-label="Event">${what}</td>
<td role="cell" data-label="Key" class="name"><bdi class="whole">${key.name}</bdi> <span class="whole muted mono">${key.hint}</span></td>
<td role="cell" data-label="By" class="by">!${actorLabel(by)}</td>
</tr>`,
    );
  const columns = [['Time (UTC)'], ['Event'], ['Key'], ['By']] as const;
  return html`<section class="card">
<h2>Log</h2>
!${events.length > LOG_ROWS_MAX ? html`<p class="muted small">The latest ${LOG_ROWS_MAX} of ${numberText(events.length)} entries.</p>` : ''}
!${table({ label: 'Log', columns, rows, isTall: rows.length > LOG_WITHOUT_SCROLLING_MAX })}
</section>`;
}

function statusOf({ id, revokedAt }: KeyView): string {
  if (revokedAt !== null) return 'Revoked';
  // All links have the text "Revoke", so screen readers also announce the name of the key.
  return html`<a class="button secondary small" href="/console/api-keys/${id}/revoke" aria-describedby="key-${id}">Revoke</a>`;
}

interface KeyCreatedView {
  readonly name: string;
  readonly scope: Scope;
  readonly secret: string;
  readonly apiUrl: string;
}

export function keyCreatedPage({ name, scope, secret, apiUrl }: KeyCreatedView, viewer: Page['viewer']): string {
  const example =
    scope === 'write'
      ? html`<h2>Add your first credits</h2>
<p>Paste this into a terminal. It adds 100 credits to an example end user:</p>
<pre class="code" tabindex="0"><code>!${addCreditsCommand(apiUrl, secret)}</code></pre>`
      : html`<h2>Read a balance</h2>
<p>Paste this into a terminal:</p>
<pre class="code" tabindex="0"><code>!${readBalanceCommand(apiUrl, secret)}</code></pre>`;
  const body = html`<section class="card">
<p><strong>Copy the key now. It won't be shown again.</strong> Scrip stores only the hash of the key.</p>
!${copyBox({ id: 'secret', label: html`<bdi>${name}</bdi> (${scope})`, text: secret })}
</section>
<section class="card">
!${example}
<p class="muted small">In your backend, keep the key in an environment variable or a secret manager, never in your code.</p>
</section>
<p><a class="button secondary" href="/console/api-keys">I've copied the key</a></p>`;
  return page({ title: 'Your new API key', viewer, current: 'api-keys', body });
}

/** The example commands work with any UUID, because the account chooses the UUIDs of its end users. */
const EXAMPLE_END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

/** Returns a `curl` command, escaped for HTML. ghtml does not process escape sequences, so `\` stays a backslash. */
export function addCreditsCommand(apiUrl: string, key: string): string {
  return html`curl -X POST ${apiUrl}/add \
  -H "Authorization: Bearer ${key}" \
  -H 'Content-Type: application/json' \
  -d '{"end_user_id":"${EXAMPLE_END_USER}","amount":100}'`;
}

function readBalanceCommand(apiUrl: string, key: string): string {
  return html`curl "${apiUrl}/get-active-balance?end_user_id=${EXAMPLE_END_USER}" \
  -H "Authorization: Bearer ${key}"`;
}

export function revokeKeyPage(key: KeyView, now: Instant, viewer: Page['viewer']): string {
  const title = `Revoke ${key.name}?`;
  const body = html`<h1>Revoke <bdi>${key.name}</bdi>?</h1>
<section class="card narrow">
<p>The key stops working within a second. This can't be undone.</p>
<dl class="facts">
<dt>Key</dt><dd class="mono">${key.hint}</dd>
<dt>Scope</dt><dd>${key.scope}</dd>
<dt>Created</dt><dd>!${day(key.createdAt)} by !${actorLabel(key.createdBy)}</dd>
<dt>Last used</dt><dd>${daysAgoText(key.lastUsedAt, now)}</dd>
</dl>
<form class="form" method="post" action="/console/api-keys/${key.id}/revoke">
<div class="buttons"><button class="button danger" type="submit">Revoke key</button>
<a class="button secondary" href="/console/api-keys">Cancel</a></div>
</form>
</section>`;
  return page({ title, viewer, current: 'api-keys', body });
}
