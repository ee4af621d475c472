// The HTTP server: which routes there are, what bounds them, and how everything that goes wrong becomes a problem
// document, Fastify's own refusals and the parser's included.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Registry } from 'prom-client';
import { RateLimit, type RateLimitSettings } from '../accounts/rate-limit.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { connectionOf } from './connection.ts';
import { ConnectionTurns, type RequestHandler } from './connection-turns.ts';
import { answerMalformed, boundConnections, whatIsWrongWith } from './connections.ts';
import { FrontDoor } from './front-door.ts';
import { answerHalfClosed } from './half-closed.ts';
import { readJson } from './json-body.ts';
import { type LedgerRoutesOptions, ledgerRoutes } from './ledger-routes.ts';
import { type Measured, metricsOf } from './metrics.ts';
import { type OperatorRoutesOptions, operatorRoutes } from './operator-routes.ts';
import { ListTurns } from './page-turns.ts';
import {
  type FieldError,
  InvalidRequest,
  PROBLEM_TYPE,
  PROBLEMS,
  pointerTo,
  problemDocument,
  sendFailure,
  sendInvalid,
  sendProblem,
} from './problem.ts';
import { RequestCounts } from './request-metrics.ts';
import { COMPONENTS } from './schemas.ts';
import {
  BODY_BYTES_MAX,
  FIELD_ERRORS_MAX,
  HEADER_BYTES_MAX,
  SERVER_LIMITS,
  type ServerLimits,
} from './server-limits.ts';
import { traceRequests } from './trace-requests.ts';
import { UnsentAnswers } from './unsent-answers.ts';
import { IN_FLIGHT_MAX, WorkInFlight } from './work-in-flight.ts';

type RouteOptions = LedgerRoutesOptions & OperatorRoutesOptions & Omit<Measured, 'requests'>;

export type HttpServerOptions = Omit<
  RouteOptions,
  'isDraining' | 'work' | 'turns' | 'listTurns' | 'unsent' | 'metrics' | 'rateLimit'
> & {
  readonly logger: FastifyBaseLogger;
  readonly version: string;
  /** Whether each request is a line in the log. */
  readonly logRequests?: boolean;
  /** Who records a span for each request. */
  readonly tracer?: Tracer | null;
  /** How often each key may call; null or absent where that is not limited. */
  readonly rateLimit?: RateLimitSettings | null;
  /** Others than `SERVER_LIMITS`, for tests. */
  readonly limits?: Partial<ServerLimits>;
  readonly console: OtherPages;
  /** Those that the console takes as well; of the API alone when absent. */
  readonly listTurns?: ListTurns;
};

/** What else is served: it comes with its own routes, parsers and answers to what goes wrong, and changes none of these. */
export interface OtherPages {
  readonly plugin: (app: FastifyInstance) => Promise<void>;
  /** The address to answer in the place of one that no route can read, so that it is answered in its own words. */
  readonly addressFor: (url: string) => string;
}

export interface HttpServer {
  readonly app: FastifyInstance;
  readonly metrics: Registry;
  /** Of all that is served, as `GET /healthz`. */
  readonly routes: readonly string[];
  /** Stops accepting, answers what is in flight, and closes what is still open after ten seconds. */
  drain(): Promise<void>;
}

/** How often connections are closed that have nothing under way any more. */
const DRAIN_IDLE_MS = 100;

/** Any version, either case. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export async function buildServer(options: HttpServerOptions): Promise<HttpServer> {
  let isDraining = false;
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const work = new WorkInFlight(IN_FLIGHT_MAX, () => options.commit.pace.perMs);
  const handle: RequestHandler = (request, response) => app.routing(request, response);
  const turns = new ConnectionTurns(work, handle);
  const genReqId = requestIds();
  const requests = new RequestCounts(options.logRequests ? options.logger : null);
  const door = new FrontDoor({
    authenticator: options.authenticator,
    work,
    turns,
    requests,
    requestId: genReqId,
    handle,
  });
  const app = bareServer({ ...options, limits, genReqId, turns, door });
  requests.watch(app);
  if (options.tracer) traceRequests(app, options.tracer);
  app.setErrorHandler(answerError);
  takeJsonOnly(app);
  const routes = listRoutes(app);
  answerUnrouted(app);
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    const wrong = whatIsWrongWith(request.raw);
    if (wrong === null) return done();
    sendProblem(reply.header('connection', 'close'), wrong.code, { detail: wrong.detail });
  });
  app.decorateRequest('holder', null);
  // All that is to be done for an answer, in one hook: each hook of its own costs a request as much as what it does.
  app.addHook('onSend', (request, reply, _payload, done) => {
    requests.finish(request, reply);
    if (request.holder !== null) {
      work.leave(request.holder);
      request.holder = null;
    }
    reply.header('x-content-type-options', 'nosniff');
    const connection = connectionOf(request.raw.socket);
    // Not on an earlier one: the answers to those that were pipelined behind it would be lost.
    if (isDraining && connection.isLatest(request.raw)) reply.header('connection', 'close');
    if (reply.getHeader('connection') === 'close') connection.endsWith(request.raw);
    done();
  });

  const metrics = metricsOf({ ...options, requests, work });
  const rateLimit = options.rateLimit ? new RateLimit(options.rateLimit) : null;
  const { listTurns = new ListTurns() } = options;
  const ledger = { ...options, work, turns, listTurns, rateLimit, unsent: new UnsentAnswers() };
  for (const schema of COMPONENTS) app.addSchema(schema);
  await describe(app, options.version);
  const guarded = async (scope: FastifyInstance) => {
    scope.addHook('onRoute', ({ url }) => door.guard(url));
    ledgerRoutes(scope, ledger);
  };
  await app.register(guarded);
  await app.register(async (scope) => guarded(hidden(scope)), { prefix: '/v1' });
  await app.register((scope) => operatorRoutes(scope, { ...options, metrics, isDraining: () => isDraining }));
  await app.register(options.console.plugin);

  return {
    app,
    metrics,
    routes,
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

interface ServerParts {
  readonly logger: FastifyBaseLogger;
  readonly limits: ServerLimits;
  readonly console: OtherPages;
  readonly genReqId: () => string;
  readonly turns: ConnectionTurns;
  readonly door: FrontDoor;
}

/** Fastify, as we need it: everything that it refuses is answered by us. */
function bareServer(parts: ServerParts): FastifyInstance {
  const { logger, console, genReqId } = parts;
  return Fastify({
    // A logger of its own would have it listen to the end of every answer, to log it.
    childLoggerFactory: () => logger,
    logController: new LogController({ disableRequestLogging: true }),
    serverFactory: () => listenFor(parts),
    genReqId,
    rewriteUrl: ({ url = '/' }) => console.addressFor(url),
    bodyLimit: BODY_BYTES_MAX,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    // While draining, what still arrives on an open connection is answered like any other, and the connection closed.
    return503OnClosing: false,
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
      // The library's own notion of a UUID takes `urn:uuid:` before it.
      onCreate: (ajv) => void ajv.addFormat('uuid', UUID),
    },
    frameworkErrors: answerError,
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, genReqId),
  });
}

/** The server of Node, with all that is looked at before Fastify is asked. */
function listenFor({ logger, limits, genReqId, turns, door }: ServerParts): Server {
  const server = createServer({
    // Node's own refusal would have no body; ours is below.
    requireHostHeader: false,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
  });
  boundConnections(server, limits);
  server.on('listening', () => logger.info('Scrip listens'));
  server.on('connection', (socket) => turns.arrive(connectionOf(socket)));
  answerHalfClosed(server);
  server.on('request', (request, response) => door.enter(request, response));
  server.on('checkExpectation', (request, response) => {
    const connection = connectionOf(request.socket);
    connection.take(request);
    turns.count(connection);
    connection.endsWith(request);
    answerExpectation(request, response, genReqId());
  });
  return server;
}

function answerExpectation(request: IncomingMessage, response: ServerResponse, requestId: string): void {
  const detail = `Scrip does not know the expectation ${request.headers.expect}.`;
  const body = problemDocument('ExpectationFailed', requestId, { detail });
  const headers = { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' };
  response.writeHead(PROBLEMS.ExpectationFailed.status, headers).end(body);
}

/** Unique in this process, and told apart from those of others by their start. */
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

function listRoutes(app: FastifyInstance): readonly string[] {
  const routes: string[] = [];
  app.addHook('onRoute', ({ url, method }) => void routes.push(...[method].flat().map((one) => `${one} ${url}`)));
  return routes;
}

/** 404, or 405 where the path exists with other methods. */
function answerUnrouted(app: FastifyInstance): void {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    methodsOf.set(url, methods);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] as string;
    const methods = methodsOf.get(path);
    if (methods === undefined) {
      sendProblem(reply, 'NotFound', { detail: `There is nothing at ${path}. The paths are listed at /docs.` });
      return;
    }
    const allow = [...methods].join(', ');
    sendProblem(reply.header('allow', allow), 'MethodNotAllowed', {
      detail: `${path} takes ${allow}, not ${request.method}.`,
    });
  });
}

/** Whatever a hook, a parser, a validator or Fastify itself refuses. */
function answerError(error: FastifyError | InvalidRequest, request: FastifyRequest, reply: FastifyReply): void {
  const invalid = invalidRequestOf(error, request);
  if (invalid) sendInvalid(reply, invalid);
  else sendFailure(reply, error);
}

function invalidRequestOf(error: FastifyError | InvalidRequest, request: FastifyRequest): InvalidRequest | null {
  if (error instanceof InvalidRequest) return error;
  if (error.validation) return invalidFields(error, request);
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new InvalidRequest('PayloadTooLarge', `A body may have ${BODY_BYTES_MAX} bytes.`);
  }
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new InvalidRequest('UnsupportedMediaType', 'Send the body with `Content-Type: application/json`.');
  }
  const status = error.statusCode ?? 500;
  return status >= 400 && status < 500 ? new InvalidRequest('BadRequest', error.message) : null;
}

function invalidFields(error: FastifyError, request: FastifyRequest): InvalidRequest {
  if (error.validationContext === 'body' && request.body === undefined) {
    return new InvalidRequest('InvalidJson', 'The body is empty; send a JSON object.');
  }
  const errors = (error.validation ?? []).slice(0, FIELD_ERRORS_MAX).map(fieldError);
  const detail = errors.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; ');
  return new InvalidRequest('InvalidField', detail, errors);
}

function fieldError({
  keyword,
  instancePath,
  params,
  message,
}: NonNullable<FastifyError['validation']>[number]): FieldError {
  switch (keyword) {
    case 'required':
      return { path: instancePath + pointerTo(String(params.missingProperty)), message: 'is required' };
    case 'additionalProperties':
      return { path: instancePath + pointerTo(String(params.additionalProperty)), message: 'is not a known field' };
    case 'pattern':
    case 'format':
      return { path: instancePath, message: 'must be a UUID' };
    case 'const':
      return { path: instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` };
    default:
      return { path: instancePath, message: message ?? 'is not valid' };
  }
}

async function describe(app: FastifyInstance, version: string): Promise<void> {
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
        { url: '/', description: 'These paths are frozen.' },
        { url: '/v1', description: 'The same, by version.' },
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

/** The alias is the same routes again; the OpenAPI document has it as a server. */
function hidden(scope: FastifyInstance): FastifyInstance {
  scope.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true };
  });
  return scope;
}
