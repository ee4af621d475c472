// The only page that ever shows a secret, and it does so once: it is the answer to the request that made the key, and
// is kept nowhere.

import { html } from 'ghtml';
import type { Scope } from '../../accounts/api-key.ts';
import { type Page, page } from '../layout.ts';
import { curlLine, EXAMPLE_END_USER } from './overview.ts';

export interface KeyCreatedView {
  readonly name: string;
  readonly scope: Scope;
  readonly secret: string;
  readonly apiUrl: string;
}

export function keyCreatedPage(view: KeyCreatedView, { viewer }: Pick<Page, 'viewer'>): string {
  return page({ title: 'Your new API key', viewer, notice: null, current: 'api-keys', body: bodyOf(view) });
}

function bodyOf({ name, scope, secret, apiUrl }: KeyCreatedView): string {
  return html`<h1>Your new API key</h1>
<section class="card">
<p><strong>Copy it now: it is shown this once.</strong> Scrip keeps only a hash of it and cannot show it again.</p>
<p class="label" id="secret-label">${name} (${scope})</p>
<div class="copy-row"><code class="secret" id="secret" role="group" aria-labelledby="secret-label">${secret}</code>
<button class="button" type="button" data-copy="secret" hidden>Copy</button></div>
<p class="muted small" id="secret-copied" role="status"></p>
</section>
<section class="card">
<h2>${scope === 'write' ? 'Add the first credits' : 'Read a balance'}</h2>
<p>${scope === 'write' ? 'Paste this into a terminal. It gives 100 credits to an end user that was made up:' : 'Paste this into a terminal:'}</p>
<pre class="code" tabindex="0"><code>!${scope === 'write' ? curlLine(apiUrl, secret) : readLine(apiUrl, secret)}</code></pre>
<p class="muted small">In your backend, load the key from an environment variable or a key store, never from the code.</p>
</section>
<p><a class="button secondary" href="/console/api-keys">I have copied it</a></p>`;
}

function readLine(apiUrl: string, secret: string): string {
  return html`curl "${apiUrl}/get-active-balance?end_user_id=${EXAMPLE_END_USER}" \
  -H "Authorization: Bearer ${secret}"`;
}
