// Routes for a webhook endpoint's page: its settings, its deliveries, and the form that resends events.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Delivery } from '../../../events/webhooks/deliveries.ts';
import { InvalidEndpoint } from '../../../events/webhooks/endpoints.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { numberText } from '../../figures.ts';
import type { FormState } from '../../pages/form-field.ts';
import { deliveryPage } from '../../pages/webhooks/delivery.ts';
import { type EndpointView, endpointPage } from '../../pages/webhooks/endpoint.ts';
import { TYPES_FIELD } from '../../pages/webhooks/event-types.ts';
import { endpointPath } from '../../pages/webhooks/webhook-paths.ts';
import type { On } from '../../permissions.ts';
import { formField, noticeOf, pathField, queryField, redirectTo, sendError, sendPage } from '../../request-reply.ts';
import { actorNames } from '../actor-names.ts';
import { readInstant } from '../form-input.ts';
import { type EndpointRequest, forEndpoint } from './endpoint-request.ts';
import { enteredTypes, readTypes } from './event-types.ts';

const PAGE_DELIVERIES = 50;

const NOTICES = {
  types: 'Event types saved.',
  paused: 'Endpoint paused. Its events will be sent after you resume it.',
  resumed: 'Endpoint resumed. The waiting events will now be sent.',
  tested: 'Test event queued. Reload this page in a moment to see its delivery.',
  resent: 'Event queued. It will be resent in a moment.',
  queued: 'Event queued. It will be sent after you resume the endpoint.',
  rotated:
    "This secret was already rotated, and Scrip shows a new secret only once. If you didn't copy the new secret, rotate it again.",
} as const;

const BUTTONS = [
  { path: 'pause', method: 'pause', notice: 'paused' },
  { path: 'resume', method: 'resume', notice: 'resumed' },
  { path: 'test', method: 'sendTest', notice: 'tested' },
] as const;

export function endpointRoutes(on: On, context: ConsoleContext): void {
  on(
    'GET /console/webhooks/:id',
    forEndpoint(context, (endpointRequest) => sendEndpoint(context, endpointRequest, null)),
  );
  on(
    'POST /console/webhooks/:id/types',
    forEndpoint(context, async (endpointRequest) => {
      const { request, viewer, endpoints, endpoint } = endpointRequest;
      const { value, error } = readTypes(request);
      if (value === null) {
        const values = { [TYPES_FIELD]: enteredTypes(request) };
        const state = { values, errors: { [TYPES_FIELD]: error } };
        return sendEndpoint(context, endpointRequest, { form: 'types', state });
      }
      await endpoints.setTypes(viewer.account, endpoint.id, value);
      return done(endpointRequest, 'types');
    }),
  );
  for (const { path, method, notice } of BUTTONS)
    on(
      `POST /console/webhooks/:id/${path}`,
      forEndpoint(context, async (endpointRequest) => {
        const { viewer, endpoints, endpoint } = endpointRequest;
        await endpoints[method](viewer.account, endpoint.id);
        return done(endpointRequest, notice);
      }),
    );
  on(
    'POST /console/webhooks/:id/resend',
    forEndpoint(context, (endpointRequest) => resendRange(context, endpointRequest)),
  );
  on(
    'GET /console/webhooks/:id/deliveries/:delivery',
    forEndpoint(context, async (endpointRequest) => {
      const { reply, viewer, endpoint } = endpointRequest;
      const delivery = await deliveryOf(endpointRequest);
      if (delivery === null) return sendDeliveryNotFound(endpointRequest);
      return sendPage(reply, deliveryPage(endpoint, delivery, viewer));
    }),
  );
  on(
    'POST /console/webhooks/:id/deliveries/:delivery/resend',
    forEndpoint(context, async (endpointRequest) => {
      const { viewer, endpoints, endpoint } = endpointRequest;
      const delivery = await deliveryOf(endpointRequest);
      const isResent = delivery !== null && (await endpoints.resend(viewer.account, endpoint.id, delivery.eventId));
      return isResent ? done(endpointRequest, 'resent') : sendDeliveryNotFound(endpointRequest);
    }),
  );
}

function done({ reply, endpoint }: EndpointRequest, notice: keyof typeof NOTICES): FastifyReply {
  const isPending = endpoint.paused !== null && (notice === 'tested' || notice === 'resent');
  return redirectTo(reply, `${endpointPath(endpoint.id)}?notice=${isPending ? 'queued' : notice}`);
}

async function sendEndpoint(
  context: ConsoleContext,
  { request, reply, viewer, endpoints, endpoint }: EndpointRequest,
  refused: EndpointView['refused'],
): Promise<FastifyReply> {
  const { account, id } = endpoint;
  const before = queryField(request, 'before') || null;
  const [summary, { deliveries, next }, nameOf] = await Promise.all([
    endpoints.summary(account, id),
    endpoints.deliveries(account, id, { before, limit: PAGE_DELIVERIES }),
    actorNames(context, account),
  ]);
  const view = {
    endpoint: { ...endpoint, createdBy: nameOf(endpoint.createdBy) },
    summary,
    deliveries,
    isFirstPage: before === null,
    older: next,
    refused,
  };
  const notice = refused === null ? (noticeOf(request, NOTICES) ?? resentNotice(request)) : null;
  return sendPage(reply, endpointPage(view, { viewer, notice }));
}

/**
 * Says how many events the resend form has queued. The redirect after the form contains this number in its query
 * string.
 */
function resentNotice(request: FastifyRequest): string | null {
  const count = queryField(request, 'resent');
  if (!/^\d{1,6}$/.test(count)) return null;
  if (count === '0') return 'This time range contains no stored events of the types that this endpoint receives.';
  return `${count === '1' ? '1 event' : `${numberText(Number(count))} events`} queued to be resent.`;
}

async function resendRange(context: ConsoleContext, endpointRequest: EndpointRequest): Promise<FastifyReply> {
  const { request, reply, viewer, endpoints, endpoint } = endpointRequest;
  const values = { from: formField(request, 'from'), to: formField(request, 'to') };
  const [from, to] = [readInstant(values.from), readInstant(values.to)];
  const refuse = (errors: FormState['errors']) =>
    sendEndpoint(context, endpointRequest, { form: 'resend', state: { values, errors } });
  if (from.value === null || to.value === null) return refuse({ from: from.error, to: to.error });
  if (to.value <= from.value) return refuse({ to: 'Enter a time after “From”.' });
  try {
    const count = await endpoints.resendRange(viewer.account, endpoint.id, from.value, to.value);
    return redirectTo(reply, `${endpointPath(endpoint.id)}?resent=${count}`);
  } catch (error) {
    if (error instanceof InvalidEndpoint) return refuse({ to: error.message });
    throw error;
  }
}

function deliveryOf({ request, viewer, endpoints, endpoint }: EndpointRequest): Promise<Delivery | null> {
  return endpoints.delivery(viewer.account, endpoint.id, pathField(request, 'delivery'));
}

function sendDeliveryNotFound({ reply, viewer }: EndpointRequest): FastifyReply {
  const detail = 'Scrip keeps only the latest deliveries of an endpoint.';
  return sendError(reply, 404, { title: 'Delivery not found', detail }, viewer);
}
