// The OpenAPI document, which comes from the schemas of the routes.

import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { COMPONENTS } from './schemas.ts';

/** To be called before the routes are added. */
export async function describe(app: FastifyInstance, version: string): Promise<void> {
  for (const schema of COMPONENTS) app.addSchema(schema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Scrip',
        version,
        description:
          'A credit ledger: it keeps the credits of each end user, adds and subtracts them, and renews them in cycles.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [
        { url: '/', description: 'The API.' },
        { url: '/v1', description: 'The same API with its version in the path.' },
      ],
      tags: [
        { name: 'Credits', description: 'Add, subtract, look up.' },
        { name: 'Cycles', description: 'Credits that renew.' },
      ],
      components: { securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key.' } } },
      security: [{ apiKey: [] }],
    },
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => String(schema.$id ?? `schema-${index}`) },
  });
}

/** Leaves the routes of a scope out: `/v1` is the same routes again, and the document has it as a server. */
export function hidden(scope: FastifyInstance): FastifyInstance {
  scope.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true };
  });
  return scope;
}
