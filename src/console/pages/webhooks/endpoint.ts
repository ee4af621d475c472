// The page for a webhook endpoint, with its state, settings and deliveries. Two other pages ask for confirmation
// before Scrip replaces the secret or removes the endpoint.

import { html } from 'ghtml';
import type { Delivery } from '../../../events/webhooks/deliveries.ts';
import type { Endpoint, EndpointSummary } from '../../../events/webhooks/endpoints.ts';
import { moment, momentUtc, numberText } from '../../figures.ts';
import { type Page, type PageContext, page } from '../../layout.ts';
import { type FormState, field, formError, idempotencyKeyInput } from '../form-field.ts';
import { type ActorView, actorLabel, type Fact, factList, pager, table } from '../lists.ts';
import { resultBadge } from './delivery.ts';
import { statusBadge } from './endpoints.ts';
import { typesField, typesLabel } from './event-types.ts';
import { deliveryPath, endpointPath, WEBHOOKS_PATH } from './webhook-paths.ts';

export interface EndpointView {
  readonly endpoint: Omit<Endpoint, 'account' | 'createdBy'> & { readonly createdBy: ActorView };
  readonly summary: EndpointSummary;
  /** Latest first. */
  readonly deliveries: readonly Delivery[];
  readonly isFirstPage: boolean;
  /** The cursor of the next page; null if this is the last page. */
  readonly older: string | null;
  readonly refused: { readonly form: 'types' | 'resend'; readonly state: FormState } | null;
}

export function endpointPage(view: EndpointView, context: PageContext): string {
  const { endpoint, refused } = view;
  const path = endpointPath(endpoint.id);
  const body = html`<p class="crumb"><a href="${WEBHOOKS_PATH}">Back to webhooks</a></p>
<h1>Webhook endpoint</h1>
!${factsSection(view)}
!${deliveryList(view)}
<section class="card">
<form class="form" method="post" action="${path}/types" novalidate>
!${typesField(endpoint.types, refused?.form === 'types' ? refused.state : null)}
<button class="button" type="submit">Save</button>
</form>
</section>
!${resendForm(view)}`;
  return page({ title: `Webhook endpoint ${endpoint.url}`, ...context, current: 'webhooks', body });
}

function factsSection({ endpoint, summary }: EndpointView): string {
  const { id, url, types, paused, previousSecretUntil, createdAt, createdBy } = endpoint;
  const { pending, oldestPendingAt, lastDeliveredAt } = summary;
  const earliest = oldestPendingAt === null ? '' : html`, earliest attempt !${momentUtc(oldestPendingAt)}`;
  const previous =
    previousSecretUntil === null ? '' : html`Also signs requests until !${momentUtc(previousSecretUntil)}`;
  const facts: readonly Fact[] = [
    ['URL', html`<span class="mono">${url}</span>`],
    ['Status', statusBadge(paused)],
    ['Paused', paused === null ? '' : html`!${momentUtc(paused.at)}. ${paused.because}`],
    ['Event types', typesLabel(types)],
    ['Pending events', html`${numberText(pending)}!${earliest}`],
    ['Last delivered', lastDeliveredAt === null ? 'never' : momentUtc(lastDeliveredAt)],
    ['Previous secret', previous],
    ['Added', html`!${momentUtc(createdAt)} by !${actorLabel(createdBy)}`],
  ];
  const path = endpointPath(id);
  const toggle = paused === null ? (['pause', 'Pause'] as const) : (['resume', 'Resume'] as const);
  return html`<section class="card">
!${factList(facts)}
<div class="buttons"><form method="post" action="${path}/test"><button class="button secondary" type="submit">Send a test event</button></form>
<form method="post" action="${path}/${toggle[0]}"><button class="button secondary" type="submit">${toggle[1]}</button></form>
<a class="button secondary" href="${path}/rotate">Rotate secret</a>
<a class="button secondary" href="${path}/remove">Remove</a></div>
</section>`;
}

function deliveryList({ endpoint, deliveries, isFirstPage, older }: EndpointView): string {
  const path = endpointPath(endpoint.id);
  const rows = deliveries.map(
    (delivery) => html`<tr role="row">
<td role="cell" data-label="Time" class="when"><a href="${deliveryPath(endpoint.id, delivery.id)}">!${moment(delivery.at)}</a></td>
<td role="cell" data-label="Event"><span class="mono">${delivery.type}</span></td>
<td role="cell" data-label="Result">!${resultBadge(delivery)}</td>
<td role="cell" data-label="Attempt" class="number">${numberText(delivery.attempt)}</td>
<td role="cell" data-label="Duration" class="number">${numberText(delivery.durationMs)} ms</td>
</tr>`,
  );
  const columns = [
    ['Time (UTC)', 'when'],
    ['Event'],
    ['Result'],
    ['Attempt', 'number'],
    ['Duration', 'number'],
  ] as const;
  const links = [
    { label: 'Latest', path: isFirstPage ? null : path },
    { label: 'Older', path: older === null ? null : `${path}?${new URLSearchParams({ before: older })}`, isNext: true },
  ];
  return html`<section class="card">
<h2>Deliveries</h2>
!${rows.length === 0 ? '<p class="muted">No deliveries yet. Send a test event to check that your backend receives it.</p>' : table({ label: 'Deliveries', columns, rows })}
!${pager(links)}
</section>`;
}

function resendForm({ endpoint, refused }: EndpointView): string {
  const state = refused?.form === 'resend' ? refused.state : null;
  const from = { id: 'from', name: 'from', label: 'From (UTC)', type: 'datetime-local' } as const;
  const to = { id: 'to', name: 'to', label: 'Until (UTC)', type: 'datetime-local' } as const;
  return html`<section class="card">
<h2>Resend events</h2>
<p class="muted small">Resend the events of a time range, for example if your backend lost them. Scrip sends only events of the types that this endpoint receives. The end of the time range is not included. Each event keeps its ID, so your backend can recognize events that it has already processed.</p>
<form class="form filter" method="post" action="${endpointPath(endpoint.id)}/resend" novalidate>
!${formError(state)}
!${field(from, state)}
!${field(to, state)}
<button class="button secondary" type="submit">Resend</button>
</form>
</section>`;
}

type Confirmed = Pick<EndpointView['endpoint'], 'id' | 'url'>;

export function rotateSecretPage({ id, url }: Confirmed, idempotencyKey: string, viewer: Page['viewer']): string {
  const body = html`<section class="card narrow">
<p>Scrip creates a new secret and shows it only once. For 24 hours, requests are signed with both secrets, so that you can deploy the new one without losing events.</p>
<dl class="facts"><dt>URL</dt><dd class="mono">${url}</dd></dl>
<form class="form" method="post" action="${endpointPath(id)}/rotate">
!${idempotencyKeyInput(idempotencyKey)}
<div class="buttons"><button class="button" type="submit">Rotate secret</button>
<a class="button secondary" href="${endpointPath(id)}">Cancel</a></div>
</form>
</section>`;
  return page({ title: 'Rotate the secret?', viewer, current: 'webhooks', body });
}

export function removeEndpointPage({ id, url }: Confirmed, pending: number, viewer: Page['viewer']): string {
  const undelivered =
    pending === 0 ? '' : ` ${numberText(pending)} pending ${pending === 1 ? 'event' : 'events'} will not be delivered.`;
  const body = html`<section class="card narrow">
<p>Scrip will stop sending events to this endpoint and delete its secret and deliveries.${undelivered} This can't be undone.</p>
<dl class="facts"><dt>URL</dt><dd class="mono">${url}</dd></dl>
<form class="form" method="post" action="${endpointPath(id)}/remove">
<div class="buttons"><button class="button danger" type="submit">Remove endpoint</button>
<a class="button secondary" href="${endpointPath(id)}">Cancel</a></div>
</form>
</section>`;
  return page({ title: 'Remove this webhook endpoint?', viewer, current: 'webhooks', body });
}
