// What operators and machines ask: is it alive, is it ready, how is it doing, what can it do. No API key is needed, and
// nothing here tells anything about an account.

import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import type { Store } from '../store/store.ts';
import { PROBLEMS, type ProblemCode, sendProblem } from './problem.ts';

export interface OperatorRoutesOptions {
  readonly store: Store;
  readonly metrics: Registry;
  /** Whether another port answers with the metrics, and this one does not. */
  readonly metricsElsewhere?: boolean;
  readonly isDraining: () => boolean;
}

export async function operatorRoutes(app: FastifyInstance, options: OperatorRoutesOptions): Promise<void> {
  const route = { schema: { hide: true }, exposeHeadRoute: true };

  app.get('/healthz', route, (_request, reply) => reply.send({ status: 'ok' }));

  app.get('/readyz', route, (_request, reply) => {
    const trouble = options.isDraining() ? 'Scrip is stopping.' : options.store.trouble();
    if (trouble === null) reply.send({ status: 'ready' });
    else sendProblem(reply, 'StoreUnavailable', { detail: trouble });
  });

  if (!options.metricsElsewhere) {
    app.get('/metrics', route, async (_request, reply) => {
      const text = await options.metrics.metrics();
      return reply.header('content-type', options.metrics.contentType).send(text);
    });
  }

  app.get('/openapi.json', route, (_request, reply) => reply.send(app.swagger()));

  app.get<{ Params: { error: string } }>('/problems/:error', route, (request, reply) => {
    const { error } = request.params;
    if (!Object.hasOwn(PROBLEMS, error)) return reply.callNotFound();
    const { status, title } = PROBLEMS[error as ProblemCode];
    return reply.send({ error, status, title });
  });

  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: DOCS_CSP,
    uiConfig: {
      layout: 'BaseLayout',
      docExpansion: 'list',
      defaultModelsExpandDepth: 0,
      supportedSubmitMethods: [],
      validatorUrl: null,
    },
    theme: { title: 'Scrip API' },
  });
}

/** Nothing from elsewhere. The page sets styles from its script, hence the one exception. */
const DOCS_CSP =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
