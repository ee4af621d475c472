// Routes that list, add and remove webhook endpoints, and rotate their secrets. A secret appears only in the response
// to the form that created it. If the form is sent again, the response is a redirect.

import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { InvalidEndpoint } from '../../../events/webhooks/endpoints.ts';
import type { ConsoleContext } from '../../console-context.ts';
import type { Viewer } from '../../layout.ts';
import type { FormState } from '../../pages/form-field.ts';
import { removeEndpointPage, rotateSecretPage } from '../../pages/webhooks/endpoint.ts';
import { endpointSecretPage, endpointsPage } from '../../pages/webhooks/endpoints.ts';
import { TYPES_FIELD } from '../../pages/webhooks/event-types.ts';
import { endpointPath, WEBHOOKS_PATH } from '../../pages/webhooks/webhook-paths.ts';
import type { On, ViewerRequest } from '../../permissions.ts';
import { formField, formHash, noticeOf, redirectTo, sendPage } from '../../request-reply.ts';
import { actorOf } from '../actor-names.ts';
import { endpointRoutes } from './endpoint.ts';
import { forEndpoint } from './endpoint-request.ts';
import { enteredTypes, readTypes } from './event-types.ts';

const NOTICES = {
  added:
    "This endpoint was already added, and Scrip shows its secret only once. If you didn't copy the secret, rotate it.",
  removed: 'Endpoint removed.',
} as const;

export function webhookRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/webhooks', (request, reply, viewer) =>
    sendEndpoints(context, reply, { viewer, notice: noticeOf(request, NOTICES), state: null }),
  );
  on('POST /console/webhooks', (request, reply, viewer) => addEndpoint(context, { request, reply, viewer }));
  on(
    'GET /console/webhooks/:id/rotate',
    forEndpoint(context, async ({ reply, viewer, endpoint }) =>
      sendPage(reply, rotateSecretPage(endpoint, randomUUID(), viewer)),
    ),
  );
  on(
    'POST /console/webhooks/:id/rotate',
    forEndpoint(context, async ({ request, reply, viewer, endpoints, endpoint: { account, id, url } }) => {
      const secret = await endpoints.rotate(account, id, formHash(request, viewer));
      if (secret === null) return redirectTo(reply, `${endpointPath(id)}?notice=rotated`);
      const { previousSecretUntil = null } = (await endpoints.find(account, id)) ?? {};
      return sendPage(reply, endpointSecretPage({ id, url, secret, previousSecretUntil }, viewer));
    }),
  );
  on(
    'GET /console/webhooks/:id/remove',
    forEndpoint(context, async ({ reply, viewer, endpoints, endpoint }) => {
      const { pending } = await endpoints.summary(viewer.account, endpoint.id);
      return sendPage(reply, removeEndpointPage(endpoint, pending, viewer));
    }),
  );
  on(
    'POST /console/webhooks/:id/remove',
    forEndpoint(context, async ({ reply, viewer, endpoints, endpoint }) => {
      await endpoints.remove(viewer.account, endpoint.id);
      return redirectTo(reply, `${WEBHOOKS_PATH}?notice=removed`);
    }),
  );
  endpointRoutes(on, context);
}

async function sendEndpoints(
  context: ConsoleContext,
  reply: FastifyReply,
  { viewer, notice, state }: { viewer: Viewer; notice: string | null; state: FormState | null },
): Promise<FastifyReply> {
  const { endpoints } = await context.webhooks();
  const listed = await Promise.all(
    (await endpoints.list(viewer.account)).map(async (endpoint) => ({
      ...endpoint,
      ...(await endpoints.summary(viewer.account, endpoint.id)),
    })),
  );
  const view = { endpoints: listed, state, idempotencyKey: randomUUID() };
  return sendPage(reply, endpointsPage(view, { viewer, notice }));
}

async function addEndpoint(context: ConsoleContext, { request, reply, viewer }: ViewerRequest): Promise<FastifyReply> {
  const { endpoints } = await context.webhooks();
  const url = formField(request, 'url').trim();
  const types = readTypes(request);
  const values = { url, [TYPES_FIELD]: enteredTypes(request) };
  const refuse = (errors: FormState['errors']) =>
    sendEndpoints(context, reply, { viewer, notice: null, state: { values, errors } });
  if (url === '') return refuse({ url: 'Enter a URL.' });
  if (types.error !== null) return refuse({ [TYPES_FIELD]: types.error });
  const { account } = viewer;
  const formSha256 = formHash(request, viewer);
  try {
    const added = await endpoints.add({ account, url, types: types.value, createdBy: actorOf(viewer), formSha256 });
    if (added === null) return redirectTo(reply, `${WEBHOOKS_PATH}?notice=added`);
    const { endpoint, secret } = added;
    const view = { id: endpoint.id, url: endpoint.url, secret, previousSecretUntil: null };
    return sendPage(reply, endpointSecretPage(view, viewer));
  } catch (error) {
    if (error instanceof InvalidEndpoint) return refuse({ url: error.message });
    throw error;
  }
}
