// Generates the OpenAPI document from the schemas of the routes.

import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { COMPONENTS } from './calls/components.ts';
import { WEBHOOKS } from './calls/webhooks.ts';

export interface Described {
  readonly version: string;
  /** The origin at which clients reach Scrip. If null or absent, server URLs are relative to the document's URL. */
  readonly publicUrl?: string | null;
}

/** Call this before the routes are added. */
export async function describe(app: FastifyInstance, { version, publicUrl }: Described): Promise<void> {
  for (const schema of COMPONENTS) app.addSchema(schema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Scrip',
        version,
        description:
          'A credit ledger. Add, hold, spend and refund the credits of your end users, and renew credits in cycles.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [
        { url: publicUrl ?? '/', description: 'Scrip' },
        { url: `${publicUrl ?? ''}/v1`, description: 'The same API, with its version in the path' },
      ],
      tags: [
        { name: 'Credits', description: 'Add, subtract and refund credits; read balances and transactions.' },
        {
          name: 'Cycles',
          description:
            'Start, change and stop recurring cycles. The credits of a cycle renew at the end of each period.',
        },
        { name: 'Holds', description: 'Credits that are set aside until the cost of some work is known.' },
        {
          name: 'Events',
          description: 'Events report changes to the credits of end users.',
        },
        // Webhooks need their own tag. If they had the tag `Events`, OpenAPI Generator would overwrite the file that it
        // generates for the calls with this tag.
        { name: 'Webhooks', description: 'The requests that Scrip sends to your webhook endpoints.' },
        {
          name: 'Test clock',
          description:
            "A clock for tests. If a ledger has a test clock, the ledger's time changes only when you move the clock.",
        },
      ],
      webhooks: WEBHOOKS,
      components: {
        securitySchemes: {
          apiKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key, sent as `Authorization: Bearer <API key>`.',
          },
        },
      },
      security: [{ apiKey: [] }],
    },
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => String(schema.$id ?? `schema-${index}`) },
  });
}

/**
 * Leaves the routes of `scope` out of the OpenAPI document. The document need not repeat the routes under `/v1`,
 * because it lists `/v1` as a server.
 */
export function hidden(scope: FastifyInstance): FastifyInstance {
  scope.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true };
  });
  return scope;
}
