// The page for one delivery of an event: the request without its signature, and the response.

import { html } from 'ghtml';
import type { Delivery } from '../../../events/webhooks/deliveries.ts';
import type { Endpoint } from '../../../events/webhooks/endpoints.ts';
import { momentUtc, numberText } from '../../figures.ts';
import { type Page, page } from '../../layout.ts';
import { deliveryPath, endpointPath } from './webhook-paths.ts';

export function deliveryPage(
  { id: endpoint, url }: Pick<Endpoint, 'id' | 'url'>,
  delivery: Delivery,
  viewer: Page['viewer'],
): string {
  const { id, eventId, type, body: sent, attempt, at, durationMs, status, error, answer } = delivery;
  const headers = [
    ['webhook-id', eventId],
    ['webhook-timestamp', String(Math.floor(at / 1_000))],
    ['content-type', 'application/json'],
  ].map(([name, value]) => html`${name}: ${value}`);
  const response =
    answer === ''
      ? html`<p class="muted">${status === null ? 'There was no response.' : 'The response had no body.'}</p>`
      : html`<pre class="code wrapped" tabindex="0" aria-label="Body of the response"><code>${answer}</code></pre>`;
  const body = html`<p class="crumb"><a href="${endpointPath(endpoint)}">Back to ${url}</a></p>
<h1>Delivery of <span class="mono id">${type}</span></h1>
<section class="card">
<dl class="facts">
<dt>Result</dt><dd>!${resultBadge(delivery)}</dd>
!${error === null ? '' : html`<dt>Error</dt><dd>${error}</dd>`}
<dt>Event</dt><dd class="mono">${eventId}</dd>
<dt>Time</dt><dd>!${momentUtc(at)}</dd>
<dt>Duration</dt><dd>${numberText(durationMs)} ms</dd>
<dt>Attempt</dt><dd>${numberText(attempt)}</dd>
</dl>
<form method="post" action="${deliveryPath(endpoint, id)}/resend"><button class="button secondary" type="submit">Resend this event</button></form>
</section>
<section class="card">
<h2>Request</h2>
<pre class="code" tabindex="0" aria-label="Headers of the request"><code>!${headers.join('\n')}</code></pre>
<pre class="code wrapped" tabindex="0" aria-label="Body of the request"><code>${sent}</code></pre>
</section>
<section class="card">
<h2>Response</h2>
!${response}
</section>`;
  return page({ title: `Delivery of ${type}`, viewer, current: 'webhooks', body });
}

export function resultBadge({ status, error }: Pick<Delivery, 'status' | 'error'>): string {
  return html`<span class="badge ${error === null ? 'succeeded' : 'failed'}">${status ?? 'No response'}</span>`;
}
