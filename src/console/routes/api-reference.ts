// The API reference, which anyone can read.

import type { ConsoleContext } from '../console-context.ts';
import { apiReferencePage, type OpenApiDocument } from '../pages/api-reference.ts';
import type { On } from '../permissions.ts';
import { sendPage } from '../request-reply.ts';

/** @param document returns the OpenAPI document; must not be called before the server listens */
export function apiReferenceRoutes(on: On, context: ConsoleContext, document: () => OpenApiDocument): void {
  on('GET /docs', async (request, reply) => {
    // If the console's tables cannot be read, show the page as signed-out users see it.
    const viewer = await context.viewerOf(request).catch(() => null);
    return sendPage(reply, apiReferencePage(document(), context.publicUrlFor(request), viewer));
  });
}
