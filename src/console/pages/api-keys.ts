// The keys of an account: which there are, who may still use them, when each was last used, and a form for a new one.
// No secret is ever here.

import { html } from 'ghtml';
import { SCOPES, type Scope } from '../../accounts/api-key.ts';
import type { Instant } from '../../ledger/instant.ts';
import { coarsely, day } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import { type Entered, field, formError, onceInput } from './form-field.ts';

export interface KeyView {
  readonly id: number;
  readonly name: string;
  readonly scope: Scope;
  readonly hint: string;
  readonly createdAt: Instant;
  /** To the day; null when it never was. */
  readonly lastUsedAt: Instant | null;
  readonly revokedAt: Instant | null;
}

export interface ApiKeysView {
  readonly now: Instant;
  /** Those that work first, the latest first. */
  readonly keys: readonly KeyView[];
  /** Whether the viewer may create and revoke. */
  readonly mayChange: boolean;
  /** What was entered and refused. */
  readonly refused: Entered | null;
  readonly once: string;
}

export const KEY_NAME_CHARACTERS_MAX = 100;

const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  write: 'write (change and read)',
  read: 'read (only read)',
};

export function apiKeysPage(view: ApiKeysView, { viewer, notice }: Pick<Page, 'viewer' | 'notice'>): string {
  return page({ title: 'API keys', viewer, notice, current: 'api-keys', body: bodyOf(view) });
}

function bodyOf(view: ApiKeysView): string {
  return html`<h1>API keys</h1>
<p class="muted lede">Your backend sends a key with each request. Whoever has it can act for your account: never put it into a browser or an app.</p>
!${view.mayChange ? newKeyForm(view) : '<p class="muted">Only an owner of the account creates and revokes keys.</p>'}
!${view.keys.length === 0 ? '<section class="card empty"><h2>No keys yet</h2><p>Create one, and add the first credits with it.</p></section>' : keyList(view)}
<section class="card">
<h2>How to replace a key</h2>
<p>Two keys work side by side. Create a new one, give it to your backend, and wait until the old one is no longer used: <em>Last used</em> tells. Then revoke the old one.</p>
</section>`;
}

function newKeyForm({ refused, once }: ApiKeysView): string {
  const scope = refused?.values.scope ?? 'write';
  const options = SCOPES.toReversed().map(
    (one) => html`<option value="${one}"!${one === scope ? ' selected' : ''}>${SCOPE_WORDS[one]}</option>`,
  );
  return html`<section class="card">
<form class="form inline" method="post" action="/console/api-keys">
!${formError(refused)}
!${field({ id: 'key-name', name: 'name', label: 'Name', hint: 'Where it is used, such as Production backend.', charactersMax: KEY_NAME_CHARACTERS_MAX }, refused)}
<div class="field"><label for="key-scope">Scope</label>
<select class="input" id="key-scope" name="scope">!${options}</select>
!${refused?.errors.scope ? html`<p class="error">${refused.errors.scope}</p>` : ''}</div>
!${onceInput(once)}
<button class="button" type="submit">Create key</button>
</form>
</section>`;
}

function keyList({ keys, now, mayChange }: ApiKeysView): string {
  const rows = keys.map(
    (key) => html`<tr role="row"!${key.revokedAt === null ? '' : ' class="gone"'}>
<td role="cell" data-label="Name" id="key-${key.id}"><span class="strong">${key.name}</span></td>
<td role="cell" data-label="Scope">${key.scope}</td>
<td role="cell" data-label="Key"><span class="mono">${key.hint}</span></td>
<td role="cell" data-label="Created">!${day(key.createdAt)}</td>
<td role="cell" data-label="Last used" class="when">${coarsely(key.lastUsedAt, now)}</td>
<td role="cell" class="end">!${stateOf(key, mayChange)}</td>
</tr>`,
  );
  return html`<section class="card">
<h2>Keys</h2>
<div class="scroll" role="region" aria-label="Keys" tabindex="0">
<table class="table stack" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Name</th><th scope="col" role="columnheader">Scope</th><th scope="col" role="columnheader">Key</th><th scope="col" role="columnheader">Created</th><th scope="col" role="columnheader">Last used</th><th scope="col" role="columnheader" class="end">State</th></tr></thead><tbody role="rowgroup">!${rows}</tbody></table>
</div>
</section>`;
}

/** The link says just what it does; which key it means is described by the name beside it. */
function stateOf({ id, revokedAt }: KeyView, mayChange: boolean): string {
  if (revokedAt !== null) return html`Revoked on !${day(revokedAt)}`;
  if (!mayChange) return 'Active';
  return html`<a class="button secondary small" href="/console/api-keys/${id}/revoke" aria-describedby="key-${id}">Revoke</a>`;
}
