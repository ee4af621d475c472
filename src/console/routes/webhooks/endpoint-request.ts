// Finds the webhook endpoint that a request names. A request for an endpoint of another account gets 404, as if the
// endpoint did not exist.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, type Endpoints, endpointIdIn } from '../../../events/webhooks/endpoints.ts';
import type { ConsoleContext } from '../../console-context.ts';
import type { Viewer } from '../../layout.ts';
import type { ViewerRequest } from '../../permissions.ts';
import { pathField, sendError } from '../../request-reply.ts';

export interface EndpointRequest extends ViewerRequest {
  readonly endpoints: Endpoints;
  readonly endpoint: Endpoint;
}

type Handle = (endpointRequest: EndpointRequest) => Promise<FastifyReply>;

/** Returns a route handler that finds the endpoint, and then calls `handle`. */
export function forEndpoint(context: ConsoleContext, handle: Handle) {
  return async (request: FastifyRequest, reply: FastifyReply, viewer: Viewer): Promise<FastifyReply> => {
    const { endpoints } = await context.webhooks();
    const id = endpointIdIn(pathField(request, 'id'));
    const endpoint = id === null ? null : await endpoints.find(viewer.account, id);
    if (endpoint === null) return sendNotFound(reply, viewer);
    return handle({ request, reply, viewer, endpoints, endpoint });
  };
}

/** Call this if the endpoint does not exist, or was removed while Scrip handled the request. */
export function sendNotFound(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'This account has no such webhook endpoint.';
  return sendError(reply, 404, { title: 'Webhook endpoint not found', detail }, viewer);
}
