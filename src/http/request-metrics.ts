// What is counted of requests: how many of each route and status, how long they took, which problems they met. Counted
// as plain numbers where a route ends, and put into words when somebody asks. Routes are known by their pattern, never
// by what was in the path, and there are as many as the service has.

import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { Histogram } from '../batching/histogram.ts';
import { PROBLEMS, type ProblemCode } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Milliseconds since the process began. */
    startedAt: number;
    /** Of its route; null where it has none, or was turned away before it came to it. */
    counts: RouteCounts | null;
  }
  interface FastifyReply {
    problem: ProblemCode | null;
  }
}

/** Seconds. A write takes one to ten milliseconds on a local disk, and some hundreds on one that is in trouble. */
const SECONDS_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const STATUS_COUNT = 600;

/** What is not a route. */
const NO_ROUTE = 'none';

export class RouteCounts {
  readonly route: string;
  readonly byStatus = new Float64Array(STATUS_COUNT);
  readonly seconds = new Histogram(SECONDS_BOUNDS);

  constructor(route: string) {
    this.route = route;
  }

  /**
   * The time is from the headers of the request to the answer being handed to the socket; of a streamed list, to its
   * beginning.
   */
  add({ startedAt }: FastifyRequest, { statusCode }: FastifyReply): number {
    // What Fastify refuses before its hooks has no beginning.
    const ms = startedAt === 0 ? 0 : performance.now() - startedAt;
    this.byStatus[statusCode] = (this.byStatus[statusCode] ?? 0) + 1;
    this.seconds.add(ms / 1_000);
    return ms;
  }
}

/** Hooks of its own would cost a request four times what the counting does: the server calls this from those it has. */
export class RequestCounts {
  readonly routes = new Map<string, RouteCounts>();
  readonly problems = new Map<ProblemCode, number>();
  readonly #log: FastifyBaseLogger | null;

  /** @param log where each is a line as well, if anywhere: its id, route, status and time, and nothing that a client sent */
  constructor(log: FastifyBaseLogger | null) {
    this.#log = log;
  }

  /** Counts the requests of all routes that are added from now on, and of those that no route takes. */
  watch(app: FastifyInstance): void {
    app.decorateRequest('startedAt', 0);
    app.decorateRequest('counts', null);
    app.decorateReply('problem', null);
    app.addHook('onRoute', (route) => {
      const counts = this.#of(route.url);
      // By a hook of the route, since Fastify puts together all that it knows of a route whenever somebody asks for any of it.
      const begin: onRequestHookHandler = (request, _reply, done) => {
        request.counts = counts;
        done();
      };
      route.onRequest = [begin, ...[route.onRequest ?? []].flat()];
    });
    this.#of(NO_ROUTE);
  }

  /** To be called once the status is settled. */
  finish(request: FastifyRequest, reply: FastifyReply): void {
    const counts = request.counts ?? this.#of(request.routeOptions.url ?? NO_ROUTE);
    const ms = counts.add(request, reply);
    const { problem } = reply;
    if (problem !== null) this.problems.set(problem, (this.problems.get(problem) ?? 0) + 1);
    if (this.#log === null) return;
    const line = {
      request_id: request.id,
      route: counts.route,
      status: reply.statusCode,
      ms: Math.round(ms * 100) / 100,
    };
    this.#log.info(line, 'request');
  }

  /** What was refused at once, before it came to its route. */
  countRefused(route: string, requestId: string, problem: ProblemCode): void {
    const { byStatus, seconds } = this.#of(route);
    const { status } = PROBLEMS[problem];
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    seconds.add(0);
    this.problems.set(problem, (this.problems.get(problem) ?? 0) + 1);
    this.#log?.info({ request_id: requestId, route, status, ms: 0 }, 'request');
  }

  #of(route: string): RouteCounts {
    const counts = this.routes.get(route) ?? new RouteCounts(route);
    this.routes.set(route, counts);
    return counts;
  }
}
