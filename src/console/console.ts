// The web console as a Fastify plugin, with its own headers, body parsers and error pages. To add a page, add a row to
// permissions.ts for each of its routes, write a route file such as routes/members.ts, and call the file's function in
// `registerRoutes`.

import formbody from '@fastify/formbody';
import helmet, { type FastifyHelmetOptions } from '@fastify/helmet';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ASSET_CACHING, ASSET_FILES } from './assets/asset-files.ts';
import { ConsoleContext, type ConsoleOptions } from './console-context.ts';
import { isCrossOrigin } from './cross-origin.ts';
import { answerError } from './error-reply.ts';
import { CONTENT_SECURITY_POLICY } from './layout.ts';
import type { OpenApiDocument } from './pages/api-reference.ts';
import { type On, pageOfForm, routesOf } from './permissions.ts';
import { pathField, redirectTo, sendError } from './request-reply.ts';
import { accountRoutes } from './routes/account.ts';
import { apiKeyRoutes } from './routes/api-keys.ts';
import { apiReferenceRoutes } from './routes/api-reference.ts';
import { endUserRoutes } from './routes/end-user/end-user.ts';
import { endUserListRoutes } from './routes/end-users.ts';
import { memberRoutes } from './routes/members.ts';
import { overviewRoutes } from './routes/overview.ts';
import { passwordResetRoutes } from './routes/passwords.ts';
import { signInRoutes } from './routes/sign-in.ts';
import { confirmEmailRoutes, joinRoutes, signUpRoutes } from './routes/sign-up.ts';
import { testClockRoutes } from './routes/test-clock.ts';
import { thresholdRoutes } from './routes/webhooks/thresholds.ts';
import { webhookRoutes } from './routes/webhooks/webhooks.ts';

const PREFIX = '/console';
const PATH_PART_CHARACTERS_MAX = 100;

export function createConsole(options: ConsoleOptions) {
  const context = new ConsoleContext(options);
  return {
    async plugin(app: FastifyInstance) {
      await app.register(helmet, headers(context));
      app.addHook('onRequest', (_request, reply, done) => {
        reply.header('cache-control', 'no-store');
        done();
      });
      readTestClock(app, context);
      const atRoot = routesOf(app, '', context);
      atRoot('GET /', (_request, reply) => redirectTo(reply, PREFIX));
      apiReferenceRoutes(atRoot, context, () => app.swagger() as OpenApiDocument);
      await app.register(
        async (scope) => {
          scope.removeAllContentTypeParsers();
          await scope.register(formbody);
          scope.setNotFoundHandler((request, reply) => answerNotFound(context, request, reply));
          scope.setErrorHandler((error: FastifyError, request, reply) => answerError(context, error, request, reply));
          refuseCrossOrigin(scope, context);
          redirectTrailingSlash(scope);
          refuseNullCharacters(scope);
          registerRoutes(routesOf(scope, PREFIX, context), context);
        },
        { prefix: PREFIX },
      );
    },
    prefix: `${PREFIX}/`,
    addressFor,
    close: () => context.close(),
  };
}

/** Replaces an invalid URL with one that leads to an error page: the router itself would respond with JSON. */
function addressFor(url: string): string {
  const [path = ''] = url.split('?', 1);
  const isParsable = isDecodable(path) && path.split('/').every((part) => part.length <= PATH_PART_CHARACTERS_MAX);
  return isParsable ? url : `${PREFIX}/not-found`;
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function readTestClock(app: FastifyInstance, { testClock }: ConsoleContext): void {
  if (testClock === null) return;
  app.addHook('onRequest', async (request) => {
    const now = await testClock.now().catch(() => null);
    if (now !== null) request.testTime = now;
  });
}

function registerRoutes(on: On, context: ConsoleContext): void {
  on('GET /console', async (request, reply) => {
    if ((await context.viewerOf(request)) !== null) return redirectTo(reply, '/console/overview');
    const { registrations } = await context.identity();
    const isFirstVisit = await registrations.isFirstVisit(context.isLocal(request));
    return redirectTo(reply, isFirstVisit ? '/console/sign-up' : '/console/sign-in');
  });
  on('GET /console/assets/:name', (request, reply) => {
    const url = `/console/assets/${pathField(request, 'name')}`;
    const file = ASSET_FILES.find((one) => one.url === url);
    if (file === undefined) return reply.callNotFound();
    return reply.header('content-type', file.contentType).header('cache-control', ASSET_CACHING).send(file.body);
  });
  signUpRoutes(on, context);
  joinRoutes(on, context);
  signInRoutes(on, context);
  accountRoutes(on, context);
  memberRoutes(on, context);
  overviewRoutes(on, context);
  endUserListRoutes(on, context);
  endUserRoutes(on, context);
  apiKeyRoutes(on, context);
  webhookRoutes(on, context);
  thresholdRoutes(on, context);
  testClockRoutes(on, context);
  if (!context.hasMail) return;
  confirmEmailRoutes(on, context);
  passwordResetRoutes(on, context);
}

function headers({ settings }: ConsoleContext): FastifyHelmetOptions {
  return {
    global: true,
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    // With `no-referrer`, forms would send `Origin: null`, which `isCrossOrigin` refuses in older browsers.
    referrerPolicy: { policy: 'same-origin' },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: settings.publicUrl?.startsWith('https:')
      ? { maxAge: 31_536_000, includeSubDomains: false }
      : false,
  };
}

function refuseCrossOrigin(scope: FastifyInstance, { settings }: ConsoleContext): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (!isCrossOrigin(request.method, request.headers, settings.publicUrl)) return;
    const detail = 'This request came from another website. Nothing was changed. Open the console and try again there.';
    await sendError(reply, 403, { title: 'Request blocked', detail });
  });
}

/**
 * Route parameters can be empty. Without this redirect, `/console/end-users/` would be the page of an end user with an
 * empty ID.
 */
function redirectTrailingSlash(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request, reply) => {
    // An absolute request target, as in `GET http://example.com/console/`, must not redirect to the host that it names.
    const target = request.url.replace(/^https?:\/\/[^/]*/i, '');
    const [path = ''] = target.split('?', 1);
    let end = path.length;
    while (path[end - 1] === '/') end -= 1;
    if (end < path.length) await redirectTo(reply, path.slice(0, end) + target.slice(path.length));
  });
}

/** PostgreSQL cannot store the character U+0000 in text, and no field of the console needs it. */
function refuseNullCharacters(scope: FastifyInstance): void {
  scope.addHook('preValidation', async ({ body, query, params }, reply) => {
    const values = [body, query, params].flatMap((fields) => Object.values(fields ?? {}).flat());
    if (!values.some((value) => String(value).includes('\0'))) return;
    const detail =
      'The request contains the character U+0000. Nothing was changed. Remove the character and try again.';
    await sendError(reply, 400, { title: 'Invalid request', detail });
  });
}

/**
 * If a path accepts only POST, redirects a GET request to the page with the form for this path. Browsers send such a
 * GET request if the user presses Enter in the address bar while the page shows a refused form. Sends "Page not found"
 * for all other URLs.
 */
async function answerNotFound(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply) {
  const [path = ''] = request.url.split('?', 1);
  const formPage = request.method === 'GET' ? pageOfForm(path) : undefined;
  if (formPage !== undefined) return redirectTo(reply, formPage);
  const viewer = await context.viewerOf(request).catch(() => null);
  return sendError(reply, 404, { title: 'Page not found', detail: 'Check the web address.' }, viewer);
}
