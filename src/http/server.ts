// Builds the HTTP server: connections, hooks and routes. Every error becomes a problem document.

import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { Registry } from 'prom-client';
import { RateLimit, type RateLimitSettings } from '../accounts/rate-limit.ts';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { RenewalJob } from '../batching/renewal-job.ts';
import type { EventLog } from '../store/event-log.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { TestClock } from '../store/test-clock.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { Connections, connectionOf } from './admission/connections.ts';
import { FairShare } from './admission/fair-share.ts';
import { answerMalformed } from './admission/malformed.ts';
import type { PageQueue } from './admission/page-queue.ts';
import { eventRoutes } from './api/event-routes.ts';
import { holdRoutes } from './api/hold-routes.ts';
import { invalidRequestOf } from './api/invalid-request.ts';
import { readJson } from './api/json-body.ts';
import { describe, hidden } from './api/openapi.ts';
import { previewRoute } from './api/preview-route.ts';
import { readRoutes } from './api/read-routes.ts';
import { testClockRoutes } from './api/test-clock-routes.ts';
import { writeRoutes } from './api/write-routes.ts';
import type { Authenticator } from './auth/authenticator.ts';
import { BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADERS_MAX, SERVER_LIMITS, type ServerLimits } from './limits.ts';
import { collectMetrics, type Measured } from './metrics/metrics.ts';
import { operatorRoutes, PROBLEM_ROUTE } from './metrics/operator-routes.ts';
import { RequestMetrics } from './metrics/request-metrics.ts';
import { traceRequests } from './metrics/request-tracing.ts';
import { sendError, sendInvalid, sendProblem } from './problem-reply.ts';
import { InvalidRequest, PROBLEMS } from './problems.ts';
import { requestIds } from './request-id.ts';

export interface HttpServerOptions {
  readonly ledger: LedgerStore;
  /** Null or absent if there is no test clock. */
  readonly testClock?: TestClock | null;
  readonly events: EventLog;
  readonly commit: GroupCommit;
  readonly renewalJob: RenewalJob;
  readonly authenticator: Authenticator;
  readonly logger: FastifyBaseLogger;
  readonly version: string;
  /** The origin at which clients reach Scrip, if known. */
  readonly publicUrl?: string | null;
  readonly console: OtherPages;
  /** The queue for reads of lists. The API and the console share this queue. */
  readonly pages: PageQueue;
  readonly logRequests?: boolean;
  /** Records a span for each request; null or absent if tracing is off. */
  readonly tracer?: Tracer | null;
  /** Whether a separate port serves the metrics. */
  readonly metricsElsewhere?: boolean;
  /** The job that derives events. */
  readonly deriving: Measured['deriving'];
  /** Null until the delivery of webhooks has started. */
  readonly webhooks: Measured['webhooks'];
  /** The rate limit of each API key; null or absent if there is none. */
  readonly rateLimit?: RateLimitSettings | null;
  /** Values that replace some of `SERVER_LIMITS`. */
  readonly limits?: Partial<ServerLimits>;
}

/** Pages outside the API, with their own routes, parsers and error handling. */
interface OtherPages {
  readonly plugin: (app: FastifyInstance) => Promise<void>;
  /** A URL is passed to `addressFor` only if it begins with this prefix, for example `/console/`. */
  readonly prefix: string;
  /** @returns the URL to route: `url` itself, or a different URL if the router would reject `url` */
  readonly addressFor: (url: string) => string;
}

export interface HttpServer {
  readonly app: FastifyInstance;
  readonly metrics: Registry;
  /** All routes, such as `GET /healthz`. */
  readonly routes: readonly string[];
  /**
   * Stops accepting connections, answers the requests in flight, and after ten seconds closes the connections that are
   * still open.
   */
  drain(): Promise<void>;
}

/** The interval at which idle connections are closed during a shutdown. */
const DRAIN_IDLE_MS = 100;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Scrip answers requests to these paths even on connections beyond `MAX_CONNECTIONS`, so that a busy process does not
 * look like a failed one.
 */
const OPERATOR_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

export async function buildServer(options: HttpServerOptions): Promise<HttpServer> {
  const { commit, logger } = options;
  let isDraining = false;
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const app = bareServer(options, limits);
  const metrics = new Registry();
  const requests = new RequestMetrics(metrics, options.logRequests ? logger : null);
  requests.decorate(app);
  if (options.tracer) traceRequests(app, options.tracer);
  // The routes send text, so Fastify needs no serializers. Without this line, Fastify would compile a serializer for
  // each response schema, and would spend most of the start-up time on it.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler(answerError);
  takeJsonOnly(app);
  const methodsOf = answerUnrouted(app);
  refuseMalformed(app, limits);
  const inFlight = new FairShare(limits.inFlightMax);
  app.decorateRequest('endsWithResponse', false);
  // A single hook does all the work, because calling a second hook would take as long as the work itself.
  app.addHook('onSend', (request, reply, _payload, done) => {
    requests.finish(request, reply);
    if (request.endsWithResponse) inFlight.release(request.caller.account, 1);
    reply.header('x-content-type-options', 'nosniff');
    const connection = connectionOf(request.raw.socket);
    // During a shutdown, Fastify would close each connection after its next response. Pipelined requests must be
    // answered first.
    if (isDraining && connection.pipelined.length > 0) reply.raw.removeHeader('connection');
    else if (isDraining || connection.isSurplus) reply.header('connection', 'close');
    if (reply.getHeader('connection') === 'close') connection.isClosing = true;
    done();
  });

  const rateLimit = options.rateLimit ? new RateLimit(options.rateLimit) : null;
  const unsent = new FairShare(limits.unsentBytesMax);
  const calls = { ...options, throughput: commit.throughput, rateLimit, inFlight, unsent };
  collectMetrics(metrics, { ...options, inFlight });
  await describe(app, options);
  const api = async (scope: FastifyInstance) => {
    writeRoutes(scope, calls);
    holdRoutes(scope, calls);
    readRoutes(scope, calls);
    previewRoute(scope, calls);
    eventRoutes(scope, calls);
    testClockRoutes(scope, calls);
  };
  await app.register(api);
  await app.register(async (scope) => api(hidden(scope)), { prefix: '/v1' });
  await app.register((scope) => operatorRoutes(scope, { ...options, metrics, isDraining: () => isDraining }));
  await app.register(options.console.plugin);

  return {
    app,
    metrics,
    routes: [...methodsOf].flatMap(([path, methods]) => [...methods].map((method) => `${method} ${path}`)),
    async drain() {
      isDraining = true;
      const deadline = setTimeout(() => app.server.closeAllConnections(), limits.drainMs);
      const idle = setInterval(() => app.server.closeIdleConnections(), DRAIN_IDLE_MS);
      await app.close();
      clearTimeout(deadline);
      clearInterval(idle);
    },
  };
}

function refuseMalformed(app: FastifyInstance, { connectionsMax }: ServerLimits): void {
  const detail = `This process has reached its limit of ${connectionsMax} open connections. Nothing was changed. Use fewer connections, or raise the MAX_CONNECTIONS setting.`;
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    const malformed = malformedIn(request.raw);
    dropNeedlessContentType(request.raw);
    if (malformed !== null) {
      sendInvalid(reply.header('connection', 'close'), malformed);
    } else if (connectionOf(request.raw.socket).isSurplus && !OPERATOR_PATHS.has(request.url)) {
      sendProblem(reply, 'Overloaded', { detail });
    } else {
      done();
    }
  });
}

/** Without this function, Fastify would refuse a read without a body because of its content type. */
function dropNeedlessContentType({ method, headers }: IncomingMessage): void {
  if (method !== 'GET' || headers['content-type'] === undefined) return;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  if (length === '0' && encoding === undefined) headers['content-type'] = undefined;
}

/** Node.js sends `100 Continue` if the `Expect` header matches this pattern. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** Finds malformed requests that Node.js accepts. */
function malformedIn({ httpVersion, headers, rawHeaders }: IncomingMessage): InvalidRequest | null {
  if (rawHeaders.length > 2 * HEADERS_MAX)
    return new InvalidRequest('HeadersTooLarge', PROBLEMS.HeadersTooLarge.detail);
  // A request line without a version means HTTP/0.9, in which responses have no status.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return new InvalidRequest('BadRequest', 'Send the request as HTTP/1.1 or HTTP/1.0.');
  const { host, expect, 'transfer-encoding': encoding } = headers;
  // RFC 9112, section 3.2: an HTTP/1.1 request has exactly one Host header. Node.js joins two Host headers with a comma
  // and a space.
  if (host === undefined ? httpVersion !== '1.0' : host.includes(', '))
    return new InvalidRequest('BadRequest', 'Send exactly one Host header.');
  if (expect !== undefined && !CONTINUE.test(expect))
    return new InvalidRequest('ExpectationFailed', PROBLEMS.ExpectationFailed.detail(expect));
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return new InvalidRequest('BadRequest', 'The only supported Transfer-Encoding is chunked.');
  return null;
}

function bareServer({ logger, console }: HttpServerOptions, limits: ServerLimits): FastifyInstance {
  const genReqId = requestIds();
  const connections = new Connections(limits);
  return Fastify({
    // With the `logger` option, Fastify would add listeners to every response.
    childLoggerFactory: () => logger,
    logController: new LogController({ disableRequestLogging: true }),
    serverFactory: (handler) => {
      const server = nodeServer(limits).on('listening', () => logger.info('Scrip is listening'));
      connections.attach(server, handler as RequestListener);
      return server;
    },
    clientErrorHandler: (error, socket) => answerMalformed(connections, error, socket, genReqId),
    genReqId,
    rewriteUrl: ({ url = '/' }) => (url.startsWith(console.prefix) ? console.addressFor(url) : url),
    bodyLimit: BODY_BYTES_MAX,
    exposeHeadRoutes: true,
    forceCloseConnections: 'idle',
    // During a shutdown, Scrip still answers requests on open connections.
    return503OnClosing: false,
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
      // Ajv's `uuid` format also accepts the prefix `urn:uuid:`. `x-examples` is only for the OpenAPI document.
      onCreate: (ajv) => void ajv.addFormat('uuid', UUID).addVocabulary(['x-examples']),
    },
    frameworkErrors: answerError,
  });
}

function nodeServer(limits: ServerLimits): Server {
  const server = createServer({
    // By default, Node.js itself would answer requests without a Host header, with an empty response.
    requireHostHeader: false,
    // Without this option, Node.js would keep only the first of two `Authorization` or `Host` headers.
    joinDuplicateHeaders: true,
    // Node.js refuses headers of exactly `maxHeaderSize` bytes.
    maxHeaderSize: HEADER_BYTES_MAX + 1,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
  });
  // With a limit, Node.js would silently drop the headers beyond the limit. Instead, `malformedIn` refuses requests
  // with too many headers.
  server.maxHeadersCount = 0;
  return server;
}

function takeJsonOnly(app: FastifyInstance): void {
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  // Otherwise, Fastify would refuse a QUERY request without a content type before Scrip can refuse the method.
  app.addHttpMethod('QUERY', { hasBody: false, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
        throw new InvalidRequest('UnsupportedMediaType', 'The body must not be compressed.');
      done(null, readJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * Answers requests that match no route: with 405 if the path accepts other methods, otherwise with 404.
 *
 * @returns the methods of each path; routes that are added later appear in the same map
 */
function answerUnrouted(app: FastifyInstance): ReadonlyMap<string, ReadonlySet<string>> {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    methodsOf.set(url, new Set([...(methodsOf.get(url) ?? []), ...[method].flat()]));
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] as string;
    const methods = methodsOf.get(routeOf(path));
    if (methods === undefined) {
      sendProblem(reply, 'NotFound', { detail: PROBLEMS.NotFound.detail(path) });
      return;
    }
    const allow = [...methods].join(', ');
    const detail = PROBLEMS.MethodNotAllowed.detail({ path, allow, method: request.method });
    sendProblem(reply.header('allow', allow), 'MethodNotAllowed', { detail });
  });
  return methodsOf;
}

/** @returns the URL of the route that serves `path`; `path` itself if the route has no parameters */
function routeOf(path: string): string {
  const [, code = ''] = /^\/problems\/(\w+)$/.exec(path) ?? [];
  return Object.hasOwn(PROBLEMS, code) ? PROBLEM_ROUTE : path;
}

/** Handles errors from hooks, parsers, validators and Fastify itself. */
function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  sendError(reply, invalidRequestOf(error, request) ?? error);
}
