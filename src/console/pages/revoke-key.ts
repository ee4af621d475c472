// Asks before a key stops working, and shows what tells whether it is still in use.

import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { coarsely, day } from '../figures.ts';
import { type Page, page } from '../layout.ts';
import type { KeyView } from './api-keys.ts';

export function revokeKeyPage(key: KeyView, now: Instant, { viewer }: Pick<Page, 'viewer'>): string {
  return page({
    title: `Revoke ${key.name}?`,
    viewer,
    notice: null,
    current: 'api-keys',
    body: html`<h1>Revoke ${key.name}?</h1>
<section class="card narrow">
<p>Requests with this key are refused within a second. This cannot be undone; a new key can be created at any time.</p>
<dl class="facts">
<dt>Key</dt><dd class="mono">${key.hint}</dd>
<dt>Scope</dt><dd>${key.scope}</dd>
<dt>Created</dt><dd>!${day(key.createdAt)}</dd>
<dt>Last used</dt><dd>${coarsely(key.lastUsedAt, now)}</dd>
</dl>
<form class="form" method="post" action="/console/api-keys/${key.id}/revoke">
<div class="buttons"><button class="button danger" type="submit">Revoke</button>
<a class="button secondary" href="/console/api-keys">Keep it</a></div>
</form>
</section>`,
  });
}
