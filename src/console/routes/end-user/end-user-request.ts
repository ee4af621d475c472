// Reads the end user from the path of a request, for all routes about one end user.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { ConsoleContext } from '../../console-context.ts';
import type { Viewer } from '../../layout.ts';
import type { ViewerRequest } from '../../permissions.ts';
import { pathField, sendError } from '../../request-reply.ts';
import { normalizedUuid } from '../end-users.ts';

export interface EndUserRequest extends ViewerRequest {
  readonly user: EndUserKey;
}

/** Returns a route handler that calls `handle` for the end user in the path, in the viewer's account. */
export function forEndUser<More extends unknown[]>(
  context: ConsoleContext,
  handle: (context: ConsoleContext, endUserRequest: EndUserRequest, ...more: More) => Promise<FastifyReply>,
  ...more: More
) {
  return (request: FastifyRequest, reply: FastifyReply, viewer: Viewer) => {
    const endUser = normalizedUuid(pathField(request, 'endUser'));
    const notFound = { title: 'End user not found', detail: 'Check the UUID in the web address.' };
    if (endUser === null) return sendError(reply, 404, notFound, viewer);
    return handle(context, { request, reply, viewer, user: { account: viewer.account, endUser } }, ...more);
  };
}
