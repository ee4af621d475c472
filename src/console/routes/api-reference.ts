// The API reference, which anyone can read. Signed-in users also see the navigation of the console.

import type { ConsoleContext } from '../console-context.ts';
import { apiReferencePage, type OpenApiDocument } from '../pages/api-reference.ts';
import type { On } from '../permissions.ts';
import { sendPage } from '../request-reply.ts';

/** @param document returns the OpenAPI document of the server; called only after the server has started to listen */
export function apiReferenceRoutes(on: On, context: ConsoleContext, document: () => OpenApiDocument): void {
  on('GET /docs', async (request, reply) => {
    // If the console's tables are unusable, show the reference as to a signed-out user.
    const viewer = await context.viewerOf(request).catch(() => null);
    return sendPage(reply, apiReferencePage(document(), context.publicUrlFor(request), viewer));
  });
}
