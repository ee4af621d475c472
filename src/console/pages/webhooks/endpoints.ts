// The list of webhook endpoints with a form for a new endpoint, and the page that shows an endpoint's secret. The
// secret appears only in the response to the form that created it.

import { html } from 'ghtml';
import type { Endpoint, EndpointSummary } from '../../../events/webhooks/endpoints.ts';
import { moment, momentUtc, numberText } from '../../figures.ts';
import { type Page, type PageContext, page } from '../../layout.ts';
import { copyBox } from '../copy-box.ts';
import { type FormState, field, formError, idempotencyKeyInput } from '../form-field.ts';
import { table } from '../lists.ts';
import { typesField, typesLabel } from './event-types.ts';
import { endpointPath, sectionTabs, WEBHOOKS_PATH } from './webhook-paths.ts';

type EndpointState = Pick<Endpoint, 'id' | 'url' | 'types' | 'paused'> &
  Pick<EndpointSummary, 'pending' | 'lastDeliveredAt'>;

export interface EndpointsView {
  /** In the order in which the endpoints were added. */
  readonly endpoints: readonly EndpointState[];
  /** The values and errors of a refused form for a new endpoint. */
  readonly state: FormState | null;
  readonly idempotencyKey: string;
}

export function endpointsPage(view: EndpointsView, context: PageContext): string {
  const { endpoints } = view;
  const body = html`<p class="muted lede">When an event happens to an end user, for example when credits expire or the balance gets low, Scrip sends an HTTP request to your endpoints.</p>
!${sectionTabs(WEBHOOKS_PATH)}
!${endpoints.length === 0 ? '<section class="card empty"><h2>No endpoints yet</h2><p>Add the URL of your backend to receive events.</p></section>' : endpointList(endpoints)}
!${newEndpointForm(view)}`;
  return page({ title: 'Webhooks', ...context, current: 'webhooks', body });
}

function endpointList(endpoints: readonly EndpointState[]): string {
  const rows = endpoints.map(
    ({ id, url, types, paused, pending, lastDeliveredAt }) => html`<tr role="row">
<td role="cell" data-label="URL" class="url"><a class="mono" href="${endpointPath(id)}">${url}</a></td>
<td role="cell" data-label="Event types">!${types.length > 1 ? `${types.length} types` : typesLabel(types)}</td>
<td role="cell" data-label="Status">!${statusBadge(paused)}</td>
<td role="cell" data-label="Pending" class="number">${numberText(pending)}</td>
<td role="cell" data-label="Last delivered" class="when">!${lastDeliveredAt === null ? 'never' : moment(lastDeliveredAt)}</td>
</tr>`,
  );
  const columns = [
    ['URL'],
    ['Event types'],
    ['Status'],
    ['Pending', 'number'],
    ['Last delivered (UTC)', 'when'],
  ] as const;
  return html`<section class="card">
<h2>Endpoints</h2>
!${table({ label: 'Endpoints', columns, rows })}
<p class="muted small">Pending events have not been delivered yet. Scrip retries failed deliveries for about three days.</p>
</section>`;
}

export function statusBadge(paused: Endpoint['paused']): string {
  return paused === null ? '<span class="badge succeeded">Active</span>' : '<span class="badge failed">Paused</span>';
}

function newEndpointForm({ state, idempotencyKey }: EndpointsView): string {
  const url = { id: 'url', name: 'url', label: 'URL' };
  return html`<section class="card">
<h2>Add an endpoint</h2>
<form class="form" method="post" action="${WEBHOOKS_PATH}" novalidate>
!${formError(state)}
!${field({ ...url, hint: 'A URL of your backend, such as https://example.com/webhooks/scrip.' }, state)}
!${typesField([], state)}
!${idempotencyKeyInput(idempotencyKey)}
<button class="button" type="submit">Add endpoint</button>
</form>
</section>`;
}

/** @property previousSecretUntil null for a new endpoint */
interface EndpointSecretView extends Pick<Endpoint, 'id' | 'url' | 'previousSecretUntil'> {
  readonly secret: string;
}

export function endpointSecretPage(view: EndpointSecretView, viewer: Page['viewer']): string {
  const { id, url, secret, previousSecretUntil } = view;
  const isNew = previousSecretUntil === null;
  const body = html`<section class="card">
<p><strong>Copy the secret now. It won't be shown again.</strong> Your backend uses the secret to verify that requests come from Scrip.</p>
!${copyBox({ id: 'secret', label: html`Secret of ${url}`, text: secret })}
!${isNew ? '' : html`<p>Until !${momentUtc(previousSecretUntil)}, requests are signed with both the new and the previous secret. Deploy the new secret before then.</p>`}
</section>
<section class="card">
<h2>Verifying requests</h2>
<p>Scrip signs requests according to the Standard Webhooks specification. Its website, standardwebhooks.com, lists libraries for many languages. Keep the secret in an environment variable or a secret manager, never in your code.</p>
</section>
<p><a class="button secondary" href="${endpointPath(id)}">I've copied the secret</a></p>`;
  const title = isNew ? 'Your new webhook endpoint' : 'Your new secret';
  return page({ title, viewer, current: 'webhooks', body });
}
