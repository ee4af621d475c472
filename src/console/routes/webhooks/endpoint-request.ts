// A request for one endpoint of the viewer's account. A request for any other endpoint gets 404, as if the endpoint did
// not exist.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, type Endpoints, endpointIdIn } from '../../../events/webhooks/endpoints.ts';
import type { ConsoleContext } from '../../console-context.ts';
import type { Viewer } from '../../layout.ts';
import { pathField, sendError } from '../../request-reply.ts';

export interface EndpointRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly viewer: Viewer;
  readonly endpoints: Endpoints;
  readonly endpoint: Endpoint;
}

type Handle = (endpointRequest: EndpointRequest) => Promise<FastifyReply>;

/** Returns a handler that finds the endpoint before it calls `handle`. */
export function forEndpoint(context: ConsoleContext, handle: Handle) {
  return async (request: FastifyRequest, reply: FastifyReply, viewer: Viewer): Promise<FastifyReply> => {
    const { endpoints } = await context.webhooks();
    const id = endpointIdIn(pathField(request, 'id'));
    const endpoint = id === null ? null : await endpoints.find(viewer.account, id);
    if (endpoint === null) return sendNotFound(reply, viewer);
    return handle({ request, reply, viewer, endpoints, endpoint });
  };
}

/** Also sent if the endpoint was removed while the request was handled. */
export function sendNotFound(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'This account has no such webhook endpoint.';
  return sendError(reply, 404, { title: 'Webhook endpoint not found', detail }, viewer);
}
