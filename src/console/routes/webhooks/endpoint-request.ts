// A request for one endpoint of the viewer's account. The response to the ID of any other endpoint is 404, as if the
// endpoint did not exist.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Endpoint, Endpoints } from '../../../events/webhooks/endpoints.ts';
import type { ConsoleContext } from '../../console-context.ts';
import type { Viewer } from '../../layout.ts';
import { pathField, sendError } from '../../request-reply.ts';

/** The largest ID that both stores can hold. */
const ID_MAX = 2 ** 31 - 1;

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
    const id = endpointId(pathField(request, 'id'));
    const endpoint = id === null ? null : await endpoints.find(viewer.account, id);
    if (endpoint === null) return sendNotFound(reply, viewer);
    return handle({ request, reply, viewer, endpoints, endpoint });
  };
}

function endpointId(text: string): number | null {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  return id >= 1 && id <= ID_MAX ? id : null;
}

/** Also sent if the endpoint was removed while the request was handled. */
export function sendNotFound(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'This account has no such webhook endpoint.';
  return sendError(reply, 404, { title: 'Webhook endpoint not found', detail }, viewer);
}
