// Generates the OpenAPI document from the schemas of the routes.

import assert from 'node:assert/strict';
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { COMPONENTS } from './calls/components.ts';
import { type Documented, RATE_HEADERS } from './calls/operation.ts';
import { WEBHOOKS } from './calls/webhooks.ts';

interface Described {
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
        { name: 'Events', description: 'Events report changes to the credits of end users.' },
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
        headers: RATE_HEADERS,
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
    transform: ({ schema, url }) => ({ schema: withDocumented(schema), url }),
    transformObject: (document) => {
      assert('openapiObject' in document, 'the document is OpenAPI 3');
      addRateHeaders(document.openapiObject as Published);
      return document.openapiObject;
    },
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => String(schema.$id ?? `schema-${index}`) },
  });
}

function withDocumented(schema: FastifySchema & Documented): FastifySchema {
  const { documentedBody, documentedHeaders: headers, ...rest } = schema;
  return {
    ...rest,
    ...(documentedBody && { body: { ...(rest.body as object), ...documentedBody } }),
    ...(headers && { headers }),
  };
}

type Responses = Readonly<Record<string, { headers?: object }>>;

interface Published {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>;
}

/**
 * Refers to the headers instead of repeating them, because the document has more than 200 responses. A 401 response has
 * none of them, because the request had no valid API key.
 */
function addRateHeaders({ paths = {} }: Published): void {
  const headers = Object.keys(RATE_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods)))
    for (const [status, response] of Object.entries(responses))
      if (status !== '401') response.headers = { ...response.headers, ...Object.fromEntries(headers) };
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
