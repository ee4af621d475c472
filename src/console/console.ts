// The web console, as a part of the HTTP server with its own headers, its own form bodies and its own pages for what goes
// wrong; nothing of it reaches the API, and nothing of the API reaches it. To add pages: give their routes a row each in
// permissions.ts, write a file of routes like member-routes.ts, and call its function in `registerRoutes`.

import formbody from '@fastify/formbody';
import helmet, { type FastifyHelmetOptions } from '@fastify/helmet';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import { accountRoutes } from './account-routes.ts';
import { ConsoleContext, type ConsoleOptions, goTo, show } from './console-context.ts';
import { isCrossOrigin } from './cross-origin.ts';
import type { Viewer } from './identity/sessions.ts';
import { CONTENT_SECURITY_POLICY } from './layout.ts';
import { memberRoutes } from './member-routes.ts';
import { errorPage } from './pages/error.ts';
import { passwordRoutes, resetRoutes } from './password-routes.ts';
import { ConsoleRoutes, type Doorkeeper } from './permissions.ts';
import { sendPage } from './routes/console-ports.ts';
import { clearCookie } from './session.ts';
import { signInRoutes, verifyRoutes } from './sign-in-routes.ts';
import { signUpRoutes } from './sign-up-routes.ts';

const PREFIX = '/console';
/** Of a part of an address, as Fastify has it; ours are shorter. */
const PART_MAX = 100;

export interface Console {
  /** To be registered with the server. */
  readonly plugin: (app: FastifyInstance) => Promise<void>;
  /** For an address below `/console` that no route can read, one at which there is nothing. */
  readonly addressFor: (url: string) => string;
  close(): Promise<void>;
}

export function createConsole(options: ConsoleOptions): Console {
  const context = new ConsoleContext(options);
  const doorkeeper = doorkeeperOf(context);
  return {
    async plugin(app) {
      await app.register(helmet, headers(context));
      app.addHook('onRequest', (_request, reply, done) => {
        reply.header('cache-control', 'no-store');
        done();
      });
      new ConsoleRoutes(app, '', doorkeeper).on('GET /', (_request, reply) => goTo(reply, PREFIX));
      await app.register(
        async (scope) => {
          await takeForms(scope);
          scope.setNotFoundHandler((request, reply) => answerUnrouted(context, request, reply));
          scope.setErrorHandler((error: FastifyError, request, reply) => answerError(error, request, reply));
          refuseCrossOrigin(scope, context);
          registerRoutes(new ConsoleRoutes(scope, PREFIX, doorkeeper), context);
        },
        { prefix: PREFIX },
      );
    },
    addressFor,
    close: () => context.close(),
  };
}

/** The router answers these itself, and knows nothing of pages. */
function addressFor(url: string): string {
  if (!url.startsWith(`${PREFIX}/`)) return url;
  const [path = ''] = url.split('?', 1);
  return isReadable(path) && path.split('/').every((part) => part.length <= PART_MAX) ? url : `${PREFIX}/unreadable`;
}

function isReadable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function registerRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console', async (request, reply) => {
    const isSignedIn = (await context.viewerOf(request)) !== null;
    return goTo(reply, isSignedIn ? '/console/overview' : '/console/sign-in');
  });
  signUpRoutes(routes, context);
  signInRoutes(routes, context);
  passwordRoutes(routes, context);
  memberRoutes(routes, context);
  accountRoutes(routes, context);
  if (!context.hasMail) return;
  verifyRoutes(routes, context);
  resetRoutes(routes, context);
}

function doorkeeperOf(context: ConsoleContext): Doorkeeper {
  return {
    viewerOf: (request) => context.viewerOf(request),
    askToSignIn(request, reply) {
      const cookie = context.cookieOf(request);
      // One that has ended, or was made up.
      if (cookie !== null && context.sessionOf(request) !== null) reply.header('set-cookie', clearCookie(cookie));
      return goTo(reply, '/console/sign-in');
    },
    refuse: (reply, viewer) => showOwnersOnly(reply, viewer),
  };
}

/** Nothing from elsewhere, nothing inline, nobody's frame. */
function headers({ settings }: ConsoleContext): FastifyHelmetOptions {
  return {
    global: true,
    contentSecurityPolicy: {
      useDefaults: false,
      directives: CONTENT_SECURITY_POLICY,
    },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: settings.publicUrl?.startsWith('https:')
      ? { maxAge: 31_536_000, includeSubDomains: false }
      : false,
  };
}

/** And nothing else: JSON is for the API. */
async function takeForms(scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers();
  await scope.register(formbody);
}

function refuseCrossOrigin(scope: FastifyInstance, { settings }: ConsoleContext): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (!isCrossOrigin(request.method, request.headers, settings.publicUrl)) return;
    await show(reply.code(403), {
      title: 'Not from here',
      body: '<p>This request came from another site, so it was refused. Nothing was changed.</p>',
    });
  });
}

/** Addresses that take forms, and before them where the form stands. */
const FORM =
  /^(\/console)\/sign-out$|^(\/console\/members)\/(?:invite|withdraw-invitations|[^/]+\/role)$|^(\/console\/end-users\/[^/]+)\/(?:add|subtract|start-cycle|stop-cycle)$/;

/** A slash at the end is forgiven, and who asks for the address of a form finds the form; anything else is said in the frame that the viewer knows. */
async function answerUnrouted(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply) {
  const [path = ''] = request.url.split('?', 1);
  if (path.endsWith('/')) return goTo(reply, path.replace(/\/+$/, ''));
  const form = request.method === 'GET' ? FORM.exec(path)?.slice(1).find(Boolean) : undefined;
  if (form !== undefined) return goTo(reply, form);
  const viewer = await context.viewerOf(request).catch(() => null);
  const view = { title: 'There is nothing here', detail: 'The address is mistyped, or the page has moved.' };
  return sendPage(reply, errorPage({ ...view, requestId: null }, { viewer }), 404);
}

function showOwnersOnly(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const body = html`<p>Only an owner of ${viewer.accountName} may do this.</p>`;
  return show(reply.code(403), { title: 'For owners', viewer, body });
}

/** What was typed is in no log: an error says what failed, not with what. */
function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500) {
    const body = html`<p>The request could not be read: ${error.message}.</p>`;
    return show(reply.code(status), { title: 'Not understood', body });
  }
  const isBusy = error.name === 'TooBusy';
  if (!isBusy) request.log.error({ err: error, request_id: request.id }, 'the console failed');
  const body =
    '<p>The console cannot answer just now. Nothing is lost; try again in a moment. The API is not affected.</p>';
  return show(reply.code(503).header('retry-after', 1), { title: 'Not just now', body });
}
