// The routes for operators and tools: health, readiness, metrics, the OpenAPI document and the descriptions of
// problems. These routes need no API key. Only the metrics contain data about accounts and API keys. The metrics
// identify both by ID.

import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { sendProblem } from '../problem-reply.ts';
import { PROBLEMS, type ProblemCode } from '../problems.ts';

export const PROBLEM_ROUTE = '/problems/:error';

interface OperatorRoutesOptions {
  readonly ledger: LedgerStore;
  readonly metrics: Registry;
  /** Whether a separate port serves the metrics. */
  readonly metricsElsewhere?: boolean;
  readonly isDraining: () => boolean;
}

export async function operatorRoutes(app: FastifyInstance, options: OperatorRoutesOptions): Promise<void> {
  const route = { schema: { hide: true }, exposeHeadRoute: true };

  app.get('/healthz', route, (_request, reply) => reply.send({ status: 'ok' }));

  app.get('/readyz', route, (_request, reply) => {
    const trouble = options.isDraining() ? 'Scrip is shutting down.' : options.ledger.trouble();
    const unreachable = options.ledger.unreachable();
    if (trouble === null) reply.send({ status: 'ready', ...(unreachable.length > 0 && { unreachable }) });
    else sendProblem(reply, 'StoreUnavailable', { detail: trouble });
  });

  if (!options.metricsElsewhere) {
    app.get('/metrics', route, async (_request, reply) => {
      const text = await options.metrics.metrics();
      return reply.header('content-type', options.metrics.contentType).send(text);
    });
  }

  app.get('/openapi.json', route, (_request, reply) => reply.send(app.swagger()));

  app.get<{ Params: { error: string } }>(PROBLEM_ROUTE, route, (request, reply) => {
    const { error } = request.params;
    if (!Object.hasOwn(PROBLEMS, error)) return reply.callNotFound();
    const { status, title, remedy } = PROBLEMS[error as ProblemCode];
    return reply.send({ error, status, title, remedy });
  });
}
