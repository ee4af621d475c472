// Counts requests by route, status, duration and problem, and logs each request if REQUEST_LOG is `yes`. The metrics
// and the log contain the pattern of a route, never the path of a request, and therefore no client input.

import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Histogram, type Registry } from 'prom-client';
import { PROBLEMS, type ProblemCode } from '../problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The time (`performance.now`) at which the headers arrived; 0 if Fastify refused the request before any hook ran.
     */
    startedAt: number;
  }
  interface FastifyReply {
    problem: ProblemCode | null;
  }
}

/**
 * The upper bounds of the histogram buckets. A write takes 1 to 10 ms on a local disk, and hundreds of milliseconds on
 * a failing disk.
 */
const SECONDS_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const NO_ROUTE = 'none';

/**
 * Requests are counted in groups of at most this size. Counting takes 0.5 µs per request in groups of a thousand, but
 * 1.2 µs one by one.
 */
const PENDING_MAX = 1_000;

/** The server's `onSend` hook calls `finish`. Calling a separate hook would take longer than the counting itself. */
export class RequestMetrics {
  readonly #responses: Counter<'route' | 'status'>;
  readonly #seconds: Histogram<'route'>;
  readonly #problems: Counter<'error'>;
  readonly #pending: { readonly route: string; readonly status: number; readonly seconds: number }[] = [];
  readonly #log: FastifyBaseLogger | null;

  /** @param log null to log nothing */
  constructor(registry: Registry, log: FastifyBaseLogger | null) {
    const registers = [registry];
    const collect = () => this.#countPending();
    this.#responses = new Counter({
      name: 'scrip_requests_total',
      help: 'Responses, by route and status',
      labelNames: ['route', 'status'],
      registers,
      collect,
    });
    this.#seconds = new Histogram({
      name: 'scrip_request_duration_seconds',
      help: 'Time from the arrival of the request headers to the response, by route',
      labelNames: ['route'],
      buckets: SECONDS_BOUNDS,
      registers,
      collect,
    });
    this.#problems = new Counter({
      name: 'scrip_problems_total',
      help: 'Problem responses, by error',
      labelNames: ['error'],
      registers,
    });
    // Prometheus computes no rate from the first value of a series, so each series begins at 0.
    for (const error of Object.keys(PROBLEMS)) this.#problems.inc({ error }, 0);
    this.#log = log;
  }

  /** Call this before routes are added. */
  decorate(app: FastifyInstance): void {
    app.decorateRequest('startedAt', 0);
    app.decorateReply('problem', null);
  }

  /**
   * Call this when the status is final. The measured duration ends when Scrip begins to send the response, even for a
   * streamed list.
   */
  finish(request: FastifyRequest, { statusCode: status, problem }: FastifyReply): void {
    const route = request.routeOptions.url ?? NO_ROUTE;
    const ms = request.startedAt === 0 ? 0 : performance.now() - request.startedAt;
    this.#pending.push({ route, status, seconds: ms / 1_000 });
    if (this.#pending.length === PENDING_MAX) this.#countPending();
    if (problem !== null) this.#problems.inc({ error: problem });
    if (this.#log === null) return;
    this.#log.info({ request_id: request.id, route, status, ms: Math.round(ms * 100) / 100 }, 'request');
  }

  #countPending(): void {
    for (const { route, status, seconds } of this.#pending.splice(0)) {
      this.#responses.inc({ route, status });
      this.#seconds.observe({ route }, seconds);
    }
  }
}
