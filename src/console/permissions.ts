// The access that each route of the console requires. If a route is missing here, the compiler reports an error. API
// keys give no access to the console, and sessions give no access to the API.
//
//   anyone      with or without a session
//   signed-in   any user, for the user's own settings
//   member      any member of the account
//   owner       owners of the account

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ConsoleContext } from './console-context.ts';
import { isolated } from './figures.ts';
import { USER_FIELD, type Viewer } from './layout.ts';
import { formFields, redirectTo, sendError } from './request-reply.ts';
import { clearCookie } from './session-cookie.ts';

export type Access = 'anyone' | 'signed-in' | 'member' | 'owner';

export const PERMISSIONS = {
  'GET /': 'anyone',
  'GET /docs': 'anyone',
  'GET /console': 'anyone',
  'GET /console/assets/:name': 'anyone',
  'GET /console/sign-up': 'anyone',
  'POST /console/sign-up': 'anyone',
  'GET /console/sign-in': 'anyone',
  'POST /console/sign-in': 'anyone',
  'POST /console/sign-out': 'anyone',
  'GET /console/join/:token': 'anyone',
  'POST /console/join/:token': 'anyone',
  'GET /console/verify/:token': 'anyone',
  'POST /console/verify/:token': 'anyone',
  'GET /console/forgot-password': 'anyone',
  'POST /console/forgot-password': 'anyone',
  'GET /console/reset-password/:token': 'anyone',
  'POST /console/reset-password/:token': 'anyone',
  'GET /console/account': 'signed-in',
  'POST /console/account/name': 'owner',
  'POST /console/account/password': 'signed-in',
  'POST /console/account/sessions/end': 'signed-in',
  'POST /console/account/theme': 'signed-in',
  'GET /console/overview': 'member',
  'GET /console/api-keys': 'member',
  'POST /console/api-keys': 'member',
  'GET /console/api-keys/:id/revoke': 'member',
  'POST /console/api-keys/:id/revoke': 'member',
  'GET /console/webhooks': 'member',
  'POST /console/webhooks': 'member',
  'GET /console/webhooks/:id': 'member',
  'POST /console/webhooks/:id/types': 'member',
  'POST /console/webhooks/:id/pause': 'member',
  'POST /console/webhooks/:id/resume': 'member',
  'POST /console/webhooks/:id/test': 'member',
  'POST /console/webhooks/:id/resend': 'member',
  'GET /console/webhooks/:id/rotate': 'member',
  'POST /console/webhooks/:id/rotate': 'member',
  'GET /console/webhooks/:id/remove': 'member',
  'POST /console/webhooks/:id/remove': 'member',
  'GET /console/webhooks/:id/deliveries/:delivery': 'member',
  'POST /console/webhooks/:id/deliveries/:delivery/resend': 'member',
  'GET /console/thresholds': 'member',
  'POST /console/thresholds': 'member',
  'POST /console/thresholds/remove': 'member',
  'POST /console/thresholds/expiring': 'member',
  'GET /console/end-users': 'member',
  'GET /console/end-users.csv': 'member',
  'GET /console/end-users/:endUser': 'member',
  'GET /console/end-users/:endUser/transactions.csv': 'member',
  'POST /console/end-users/:endUser/add': 'member',
  'POST /console/end-users/:endUser/subtract': 'member',
  'POST /console/end-users/:endUser/start-cycle': 'member',
  'POST /console/end-users/:endUser/stop-cycle': 'member',
  'GET /console/end-users/:endUser/transactions/:transaction': 'member',
  'POST /console/end-users/:endUser/transactions/:transaction/refund': 'member',
  'POST /console/end-users/:endUser/transactions/:transaction/release': 'member',
  'GET /console/test-clock': 'member',
  'POST /console/test-clock': 'member',
  'GET /console/members': 'owner',
  'POST /console/members/invite': 'owner',
  'POST /console/members/withdraw-invitations': 'owner',
  'GET /console/members/:user/remove': 'owner',
  'POST /console/members/:user/remove': 'owner',
  'POST /console/members/:user/role': 'owner',
} as const satisfies Record<string, Access>;

type Permissions = typeof PERMISSIONS;
type RouteName = keyof Permissions;

/** A request of a signed-in user. */
export interface ViewerRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly viewer: Viewer;
}

/** Handlers of `anyone` routes get no viewer, because looking up the viewer would cost a query. */
type Handler<Name extends RouteName> = (
  request: FastifyRequest,
  reply: FastifyReply,
  viewer: Permissions[Name] extends 'anyone' ? null : Viewer,
) => unknown;

/**
 * Patterns of the URLs that accept only POST. To get the path of the page whose form posts to such a URL, keep the
 * first `length` segments of the URL.
 */
const FORM_URLS = Object.keys(PERMISSIONS)
  .map((name) => name.split(' ') as [method: string, path: string])
  .filter(([method, path]) => method === 'POST' && !isPage(path))
  .map(([, path]) => {
    const segments = path.split('/');
    let length = segments.length - 1;
    while (!isPage(segments.slice(0, length).join('/'))) length -= 1;
    return { pattern: new RegExp(`^${path.replaceAll(/:[^/]+/g, '[^/]+')}$`), length };
  });

function isPage(path: string): boolean {
  return `GET ${path}` in PERMISSIONS;
}

/** Returns the path of the page whose form posts to `path`; undefined if `path` matches none of `FORM_URLS`. */
export function pageOfForm(path: string): string | undefined {
  const form = FORM_URLS.find(({ pattern }) => pattern.test(path));
  return form && path.split('/').slice(0, form.length).join('/');
}

export type On = <Name extends RouteName>(name: Name, handle: Handler<Name>) => void;

/** @param prefix the prefix that `app` adds to the path of each route */
export function routesOf(app: FastifyInstance, prefix: string, context: ConsoleContext): On {
  return (name, handle) => {
    const access: Access = PERMISSIONS[name];
    const [method, path] = name.split(' ') as [string, string];
    app.route({
      method,
      url: path.slice(prefix.length) || '/',
      prefixTrailingSlash: 'no-slash',
      schema: { hide: true },
      exposeHeadRoute: method === 'GET',
      async handler(request, reply) {
        if (access === 'anyone') return handle(request, reply, null as never);
        const viewer = await context.viewerOf(request);
        if (viewer === null) return redirectToSignIn(context, request, reply);
        if (formFields(request, USER_FIELD).some((id) => id !== viewer.userId)) return refuseOtherUser(reply, viewer);
        if (access === 'owner' && viewer.role !== 'owner') return refuseNonOwner(reply, viewer);
        return handle(request, reply, viewer as never);
      },
    });
  };
}

function redirectToSignIn(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const cookie = context.cookieFor(request);
  // If this request has a token, then either the token is forged or its session has ended. Delete the cookie in both
  // cases.
  if (cookie !== null && context.sessionTokenOf(request) !== null) reply.header('set-cookie', clearCookie(cookie));
  return redirectTo(reply, `/console/sign-in${request.method === 'POST' ? '?notice=session-ended' : ''}`);
}

export function refuseNonOwner(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'Only owners of this account can do this. Ask an owner to do it for you.';
  return sendError(reply, 403, { title: 'Owners only', detail }, viewer);
}

/** All tabs of a browser share one session, so another user might have signed in after the form was loaded. */
function refuseOtherUser(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = `Nothing was changed, because another user was signed in when this form was loaded. Now, ${viewer.email} is signed in, a member of ${isolated(viewer.accountName)}. To make the change, open the form again as the right user.`;
  return sendError(reply, 409, { title: 'Another user is signed in', detail }, viewer);
}
