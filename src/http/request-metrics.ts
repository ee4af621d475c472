// What is counted of requests: how many of each route and status, how long they took, which problems they met. Counted
// as plain numbers where a route ends, and put into words when somebody asks. Routes are known by their pattern, never
// by what was in the path, and there are as many as the service has.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Tally } from '../commit/tally.ts';
import type { ProblemCode } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Milliseconds since the process began. */
    startedAt: number;
  }
  interface FastifyReply {
    problem: ProblemCode | null;
  }
  interface FastifyContextConfig {
    counts?: RouteCounts;
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
  readonly seconds = new Tally(SECONDS_BOUNDS);

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
  readonly #log: boolean;

  /** @param log whether each is a line in the log as well: its id, route, status and time, and nothing that a client sent */
  constructor({ log }: { log: boolean }) {
    this.#log = log;
  }

  /** Counts the requests of all routes that are added from now on, and of those that no route takes. */
  watch(app: FastifyInstance): void {
    app.decorateRequest('startedAt', 0);
    app.decorateReply('problem', null);
    app.addHook('onRoute', (route) => {
      route.config = { ...route.config, counts: this.#of(route.url) };
    });
    this.#of(NO_ROUTE);
  }

  /** To be called once the status is settled. */
  finish(request: FastifyRequest, reply: FastifyReply): void {
    const counts = request.routeOptions.config.counts ?? this.#of(NO_ROUTE);
    const ms = counts.add(request, reply);
    const { problem } = reply;
    if (problem !== null) this.problems.set(problem, (this.problems.get(problem) ?? 0) + 1);
    if (this.#log) logRequest(request, reply, { route: counts.route, ms });
  }

  #of(route: string): RouteCounts {
    const counts = this.routes.get(route) ?? new RouteCounts(route);
    this.routes.set(route, counts);
    return counts;
  }
}

function logRequest(request: FastifyRequest, reply: FastifyReply, { route, ms }: { route: string; ms: number }): void {
  request.log.info(
    { request_id: request.id, route, status: reply.statusCode, ms: Math.round(ms * 100) / 100 },
    'request',
  );
}
