// The web console as a Fastify plugin, with headers, body parsers and error pages of its own: it does not affect the API,
// and the API does not affect it. To add a page, give its routes a row each in permissions.ts, write a file of routes
// such as routes/members.ts, and call it in `registerRoutes`.

import formbody from '@fastify/formbody';
import helmet, { type FastifyHelmetOptions } from '@fastify/helmet';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ASSET_CACHING, ASSET_FILES } from './assets/asset-files.ts';
import { ConsoleContext, type ConsoleOptions } from './console-context.ts';
import { isCrossOrigin } from './cross-origin.ts';
import { CONTENT_SECURITY_POLICY } from './layout.ts';
import { type On, routesOf } from './permissions.ts';
import { pathField, redirectTo, sendError } from './request-reply.ts';
import { apiKeyRoutes } from './routes/api-keys.ts';
import { endUserRoutes } from './routes/end-user.ts';
import { endUserListRoutes } from './routes/end-users.ts';
import { memberRoutes } from './routes/members.ts';
import { overviewRoutes } from './routes/overview.ts';
import { passwordResetRoutes, passwordRoutes } from './routes/passwords.ts';
import { confirmEmailRoutes, signInRoutes } from './routes/sign-in.ts';
import { signUpRoutes } from './routes/sign-up.ts';

const PREFIX = '/console';
/** The limit of Fastify for a part of a path. Paths of the console are shorter. */
const PATH_PART_CHARACTERS_MAX = 100;

export interface Console {
  readonly plugin: (app: FastifyInstance) => Promise<void>;
  readonly prefix: string;
  /** Replaces a URL of the console that the router cannot parse by one that leads to "Page not found". */
  readonly addressFor: (url: string) => string;
  close(): Promise<void>;
}

export function createConsole(options: ConsoleOptions): Console {
  const context = new ConsoleContext(options);
  return {
    async plugin(app) {
      await app.register(helmet, headers(context));
      app.addHook('onRequest', (_request, reply, done) => {
        reply.header('cache-control', 'no-store');
        done();
      });
      routesOf(app, '', context)('GET /', (_request, reply) => redirectTo(reply, PREFIX));
      await app.register(
        async (scope) => {
          await parseFormsOnly(scope);
          scope.setNotFoundHandler((request, reply) => answerNotFound(context, request, reply));
          scope.setErrorHandler((error: FastifyError, request, reply) => answerError(error, request, reply));
          refuseCrossOrigin(scope, context);
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

/** Without this, the router would answer such URLs itself, with a JSON error. */
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

function registerRoutes(on: On, context: ConsoleContext): void {
  on('GET /console', async (request, reply) => {
    const isSignedIn = (await context.viewerOf(request)) !== null;
    return redirectTo(reply, isSignedIn ? '/console/overview' : '/console/sign-in');
  });
  on('GET /console/assets/:name', (request, reply) => {
    const url = `/console/assets/${pathField(request, 'name')}`;
    const file = ASSET_FILES.find((one) => one.url === url);
    if (file === undefined) return reply.callNotFound();
    return reply.header('content-type', file.contentType).header('cache-control', ASSET_CACHING).send(file.body);
  });
  signUpRoutes(on, context);
  signInRoutes(on, context);
  passwordRoutes(on, context);
  memberRoutes(on, context);
  overviewRoutes(on, context);
  endUserListRoutes(on, context);
  endUserRoutes(on, context);
  apiKeyRoutes(on, context);
  if (!context.hasMail) return;
  confirmEmailRoutes(on, context);
  passwordResetRoutes(on, context);
}

function headers({ settings }: ConsoleContext): FastifyHelmetOptions {
  return {
    global: true,
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: settings.publicUrl?.startsWith('https:')
      ? { maxAge: 31_536_000, includeSubDomains: false }
      : false,
  };
}

async function parseFormsOnly(scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers();
  await scope.register(formbody);
}

function refuseCrossOrigin(scope: FastifyInstance, { settings }: ConsoleContext): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (!isCrossOrigin(request.method, request.headers, settings.publicUrl)) return;
    const detail = 'This request came from another website. Nothing was changed.';
    await sendError(reply, 403, { title: 'Request blocked', detail });
  });
}

/** URLs that only accept forms; the captured part is the page of the form. */
const FORM_PATH =
  /^(\/console)\/sign-out$|^(\/console\/members)\/(?:invite|withdraw-invitations|[^/]+\/role)$|^(\/console\/end-users\/[^/]+)\/(?:add|subtract|start-cycle|stop-cycle)$/;

/** Redirects from a trailing slash, and from the URL of a form to its page, as after going back in the browser. */
async function answerNotFound(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply) {
  const [path = ''] = request.url.split('?', 1);
  if (path.endsWith('/')) return redirectTo(reply, path.replace(/\/+$/, ''));
  const formPage = request.method === 'GET' ? FORM_PATH.exec(path)?.slice(1).find(Boolean) : undefined;
  if (formPage !== undefined) return redirectTo(reply, formPage);
  const viewer = await context.viewerOf(request).catch(() => null);
  return sendError(reply, 404, { title: 'Page not found', detail: 'Check the address.' }, viewer);
}

function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500) {
    const detail = `The server could not read this request: ${error.message}.`;
    return sendError(reply, status, { title: 'Invalid request', detail });
  }
  // Neither the log nor the page contains what was entered.
  const isBusy = error.name === 'PasswordHasherBusy';
  if (!isBusy) request.log.error({ err: error, request_id: request.id }, 'the console failed');
  const detail = isBusy
    ? 'The server is busy. Try again in a moment.'
    : 'Something went wrong in the console. Try again in a moment. The API is not affected.';
  reply.header('retry-after', 1);
  const view = { title: 'Temporarily unavailable', detail, ...(isBusy ? {} : { requestId: request.id }) };
  return sendError(reply, 503, view);
}
