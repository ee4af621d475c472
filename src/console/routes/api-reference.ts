// The API reference, which anyone can read.

import type { ConsoleContext } from '../console-context.ts';
import { apiReferencePage, type OpenApiDocument } from '../pages/api-reference.ts';
import type { On } from '../permissions.ts';
import { sendPage } from '../request-reply.ts';

/** @param document must not be called before the server has started to listen */
export function apiReferenceRoutes(on: On, context: ConsoleContext, document: () => OpenApiDocument): void {
  on('GET /docs', async (request, reply) => {
    // If the tables of the console are unusable, show the reference as to a signed-out user.
    const viewer = await context.viewerOf(request).catch(() => null);
    return sendPage(reply, apiReferencePage(document(), context.publicUrlFor(request), viewer));
  });
}
