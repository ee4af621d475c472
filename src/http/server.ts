// Builds the HTTP server: connections, hooks and routes. Every error becomes a problem document, including those of Fastify
// and of the HTTP parser.

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
import { FairShare } from '../batching/fair-share.ts';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { RenewalJob } from '../batching/renewal-job.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { Connections, connectionOf } from './admission/connections.ts';
import { answerMalformed } from './admission/malformed.ts';
import type { PageQueue } from './admission/page-queue.ts';
import { invalidRequestOf } from './api/invalid-request.ts';
import { readJson } from './api/json-body.ts';
import { describe, hidden } from './api/openapi.ts';
import { readRoutes } from './api/read-routes.ts';
import { writeRoutes } from './api/write-routes.ts';
import type { Authenticator } from './auth/authenticator.ts';
import { BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADERS_MAX, SERVER_LIMITS, type ServerLimits } from './limits.ts';
import { collectMetrics } from './metrics/metrics.ts';
import { operatorRoutes } from './metrics/operator-routes.ts';
import { RequestMetrics } from './metrics/request-metrics.ts';
import { traceRequests } from './metrics/request-tracing.ts';
import { sendError, sendInvalid, sendProblem } from './problem-reply.ts';
import { InvalidRequest, PROBLEMS } from './problems.ts';

export interface HttpServerOptions {
  readonly ledger: LedgerStore;
  readonly commit: GroupCommit;
  readonly renewalJob: RenewalJob;
  readonly authenticator: Authenticator;
  readonly logger: FastifyBaseLogger;
  readonly version: string;
  readonly console: OtherPages;
  /** Shared with the console. */
  readonly pages: PageQueue;
  /** Whether each request is a line in the log. */
  readonly logRequests?: boolean;
  /** Records a span for each request. */
  readonly tracer?: Tracer | null;
  /** Whether the metrics have a port of their own. */
  readonly metricsElsewhere?: boolean;
  /** How often each key may call; null or absent if that is not limited. */
  readonly rateLimit?: RateLimitSettings | null;
  /** Other bounds than `SERVER_LIMITS`. */
  readonly limits?: Partial<ServerLimits>;
}

/** Pages beside the API, with routes, parsers and errors of their own. */
export interface OtherPages {
  readonly plugin: (app: FastifyInstance) => Promise<void>;
  /** Addresses that begin with it are theirs, such as `/console/`. */
  readonly prefix: string;
  /** Replaces an address of theirs that no route can decode, so that they can answer it. */
  readonly addressFor: (url: string) => string;
}

export interface HttpServer {
  readonly app: FastifyInstance;
  readonly metrics: Registry;
  /** All routes, such as `GET /healthz`. */
  readonly routes: readonly string[];
  /** Stops accepting connections, answers the requests in flight, and closes connections that are open after ten seconds. */
  drain(): Promise<void>;
}

/** How often connections without a request are closed while draining. */
const DRAIN_IDLE_MS = 100;

/** Any version, either case. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Answered on connections beyond `MAX_CONNECTIONS` too: a busy process is alive. */
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
  app.setErrorHandler(answerError);
  takeJsonOnly(app);
  const methodsOf = answerUnrouted(app);
  refuseMalformed(app, limits);
  const inFlight = new FairShare(limits.inFlightMax);
  app.decorateRequest('isInFlight', false);
  // One hook for all that a response needs: each hook of its own costs a request as much as what it does.
  app.addHook('onSend', (request, reply, _payload, done) => {
    requests.finish(request, reply);
    if (request.isInFlight) inFlight.release(request.caller.account, 1);
    reply.header('x-content-type-options', 'nosniff');
    const connection = connectionOf(request.raw.socket);
    // Fastify closes a connection behind any answer while it is closing: requests that were pipelined are answered first.
    if (isDraining && connection.pipelined.length > 0) reply.raw.removeHeader('connection');
    else if (isDraining || connection.isSurplus) reply.header('connection', 'close');
    if (reply.getHeader('connection') === 'close') connection.isClosing = true;
    done();
  });

  const rateLimit = options.rateLimit ? new RateLimit(options.rateLimit) : null;
  const unsent = new FairShare(limits.unsentBytesMax);
  const calls = { ...options, throughput: commit.throughput, rateLimit, inFlight, unsent };
  collectMetrics(metrics, { ...options, inFlight });
  await describe(app, options.version);
  const api = async (scope: FastifyInstance) => {
    writeRoutes(scope, calls);
    readRoutes(scope, calls);
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

/** Refuses malformed requests, and those of connections beyond `MAX_CONNECTIONS`. */
function refuseMalformed(app: FastifyInstance, { connectionsMax }: ServerLimits): void {
  const detail = `Nothing was changed. This process has reached its limit of ${connectionsMax} open connections (MAX_CONNECTIONS); use fewer, or raise the setting.`;
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    const malformed = malformedIn(request.raw);
    if (malformed !== null) {
      sendInvalid(reply.header('connection', 'close'), malformed);
    } else if (connectionOf(request.raw.socket).isSurplus && !OPERATOR_PATHS.has(request.url)) {
      sendProblem(reply, 'Overloaded', { detail });
    } else {
      done();
    }
  });
}

/** As Node looks for it, to answer `100 Continue`. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** Malformed requests that Node accepts. */
function malformedIn({ httpVersion, headers, rawHeaders }: IncomingMessage): InvalidRequest | null {
  if (rawHeaders.length > 2 * HEADERS_MAX)
    return new InvalidRequest('HeadersTooLarge', PROBLEMS.HeadersTooLarge.detail);
  // A request line without a version is HTTP/0.9, whose answers have no status.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return new InvalidRequest('BadRequest', 'Send the request as HTTP/1.1 or HTTP/1.0.');
  const { host, expect, 'transfer-encoding': encoding } = headers;
  // RFC 9112, section 3.2: a proxy may have routed by the other of two, which Node joins with a comma and a space.
  if (host === undefined ? httpVersion !== '1.0' : host.includes(', '))
    return new InvalidRequest('BadRequest', 'Send exactly one Host header.');
  if (expect !== undefined && !CONTINUE.test(expect))
    return new InvalidRequest('ExpectationFailed', PROBLEMS.ExpectationFailed.detail(expect));
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return new InvalidRequest('BadRequest', 'The only supported Transfer-Encoding is chunked.');
  return null;
}

/** Fastify without its own errors, log and server. */
function bareServer({ logger, console }: HttpServerOptions, limits: ServerLimits): FastifyInstance {
  const genReqId = requestIds();
  const connections = new Connections(limits);
  return Fastify({
    // With a logger of its own, Fastify would add listeners to every response, to log it.
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
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    // While draining, requests on open connections are answered like any other, and the connection closed.
    return503OnClosing: false,
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
      // The format of the library takes `urn:uuid:` before it.
      onCreate: (ajv) => void ajv.addFormat('uuid', UUID),
    },
    frameworkErrors: answerError,
  });
}

function nodeServer(limits: ServerLimits): Server {
  const server = createServer({
    // Node would refuse such a request without a body; `malformedIn` does it with a problem.
    requireHostHeader: false,
    // Node would keep the first of two `Authorization` or `Host` headers, and drop the other.
    joinDuplicateHeaders: true,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
  });
  // Node would drop further headers; `malformedIn` refuses the request.
  server.maxHeadersCount = 0;
  return server;
}

/** Unique in this process; the prefix differs between processes and starts. */
function requestIds(): () => string {
  const prefix = `${Date.now().toString(36)}-${process.pid.toString(36)}-`;
  let count = 0;
  return () => prefix + (count++).toString(36);
}

function takeJsonOnly(app: FastifyInstance): void {
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      if (request.headers['content-encoding'] !== undefined)
        throw new InvalidRequest('UnsupportedMediaType', 'The body must not be compressed.');
      done(null, readJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * Answers 404, or 405 if the path has other methods.
 *
 * @returns the methods of each path that is added from now on
 */
function answerUnrouted(app: FastifyInstance): ReadonlyMap<string, ReadonlySet<string>> {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    methodsOf.set(url, new Set([...(methodsOf.get(url) ?? []), ...[method].flat()]));
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] as string;
    const methods = methodsOf.get(path);
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

/** Answers errors of hooks, parsers, validators and Fastify itself. */
function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  sendError(reply, invalidRequestOf(error, request) ?? error);
}
