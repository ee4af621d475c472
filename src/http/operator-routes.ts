// What operators and machines ask: is it alive, is it ready, how is it doing, what can it do. No API key is needed, and
// nothing here tells anything about an account.

import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { GroupCommit } from '../commit/group-commit.ts';
import type { RenewalClock } from '../commit/renewal-clock.ts';
import type { Store } from '../store/store.ts';
import { PROBLEMS, type ProblemCode, sendProblem } from './problem.ts';

export interface OperatorRoutesOptions {
  readonly store: Store;
  readonly commit: GroupCommit;
  readonly renewalClock: RenewalClock;
  readonly isDraining: () => boolean;
}

export async function operatorRoutes(app: FastifyInstance, options: OperatorRoutesOptions): Promise<void> {
  const route = { schema: { hide: true }, exposeHeadRoute: true };
  const registry = metricsOf(options);

  app.get('/healthz', route, (_request, reply) => reply.send({ status: 'ok' }));

  app.get('/readyz', route, (_request, reply) => {
    const trouble = options.isDraining() ? 'Scrip is stopping.' : options.store.trouble();
    if (trouble === null) reply.send({ status: 'ready' });
    else sendProblem(reply, 'StoreUnavailable', { detail: trouble });
  });

  app.get('/metrics', route, async (_request, reply) => {
    const text = await registry.metrics();
    return reply.header('content-type', registry.contentType).send(text);
  });

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

/** Counted where things happen as plain numbers, and read when somebody asks: a request pays nothing for it. */
function metricsOf({ store, commit, renewalClock }: OperatorRoutesOptions): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  const { counts } = commit;
  counter('scrip_batches_total', 'Batches written', () => counts.batches);
  counter(
    'scrip_batch_seconds_total',
    'Seconds from the first load of a batch to stable storage',
    () => counts.seconds,
  );
  counter('scrip_commands_total', 'Commands decided, accepted or refused', () => counts.commands);
  counter('scrip_refusals_total', 'Commands that a rule refused', () => counts.refusals);
  counter('scrip_overloads_total', 'Commands turned away since the queue was full', () => counts.overloads);
  counter('scrip_store_faults_total', 'Batches that a fault of the store befell', () => counts.faults);
  counter('scrip_renewed_end_users_total', 'End users whose due renewals were entered', () => renewalClock.renewed);
  gauge('scrip_queue_commands', 'Commands waiting for a batch', () => commit.queued);
  gauge('scrip_store_ready', '1 while writes can be expected to work', () => (store.trouble() === null ? 1 : 0));
  return registry;
}
