// Who may do what in the console: one row for each route. Routes are made through this table alone, so that one without
// a row does not compile, and does not start either. An API key opens nothing here, and a session nothing of the API.
//
//   anyone      also who is not signed in
//   signed-in   concerns nobody but the person
//   member      whoever belongs to the account
//   owner       who also says who belongs to it

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Viewer } from './identity/sessions.ts';

export type Who = 'anyone' | 'signed-in' | 'member' | 'owner';

export const PERMISSIONS = {
  'GET /': 'anyone',
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
  'GET /console/password': 'signed-in',
  'POST /console/password': 'signed-in',
  'GET /console/overview': 'member',
  'GET /console/api-keys': 'member',
  'POST /console/api-keys': 'member',
  'GET /console/api-keys/:id/revoke': 'member',
  'POST /console/api-keys/:id/revoke': 'member',
  'GET /console/end-users': 'member',
  'GET /console/end-users/:endUser': 'member',
  'POST /console/end-users/:endUser/add': 'member',
  'POST /console/end-users/:endUser/subtract': 'member',
  'POST /console/end-users/:endUser/start-cycle': 'member',
  'POST /console/end-users/:endUser/stop-cycle': 'member',
  'GET /console/members': 'owner',
  'POST /console/members/invite': 'owner',
  'POST /console/members/withdraw-invitations': 'owner',
  'GET /console/members/:user/remove': 'owner',
  'POST /console/members/:user/remove': 'owner',
  'POST /console/members/:user/role': 'owner',
} as const satisfies Record<string, Who>;

type Permissions = typeof PERMISSIONS;
export type RouteName = keyof Permissions;

/** Handlers of what anyone may do get no viewer: to find out who it is costs a look-up. */
export type Handler<Name extends RouteName> = (
  request: FastifyRequest,
  reply: FastifyReply,
  viewer: Permissions[Name] extends 'anyone' ? null : Viewer,
) => unknown;

export interface Doorkeeper {
  viewerOf(request: FastifyRequest): Promise<Viewer | null>;
  /** Answers somebody who is not signed in. */
  askToSignIn(request: FastifyRequest, reply: FastifyReply): unknown;
  /** Answers a member who would have to be an owner. */
  refuse(reply: FastifyReply, viewer: Viewer): unknown;
}

export class ConsoleRoutes {
  readonly #app: FastifyInstance;
  readonly #prefix: string;
  readonly #doorkeeper: Doorkeeper;

  /** @param prefix with which the routes of `app` begin anyway */
  constructor(app: FastifyInstance, prefix: string, doorkeeper: Doorkeeper) {
    this.#app = app;
    this.#prefix = prefix;
    this.#doorkeeper = doorkeeper;
  }

  on<Name extends RouteName>(name: Name, handle: Handler<Name>): void {
    const who: Who | undefined = PERMISSIONS[name];
    if (who === undefined) throw new Error(`${name} has no row that says who may do it`);
    const [method, path] = name.split(' ') as [string, string];
    this.#app.route({
      method,
      url: path.slice(this.#prefix.length) || '/',
      prefixTrailingSlash: 'no-slash',
      schema: { hide: true },
      exposeHeadRoute: method === 'GET',
      handler: (request, reply) => this.#open(who, request, reply, handle as Handler<RouteName>),
    });
  }

  async #open(who: Who, request: FastifyRequest, reply: FastifyReply, handle: Handler<RouteName>): Promise<unknown> {
    if (who === 'anyone') return handle(request, reply, null as never);
    const viewer = await this.#doorkeeper.viewerOf(request);
    if (viewer === null) return this.#doorkeeper.askToSignIn(request, reply);
    if (who === 'owner' && viewer.role !== 'owner') return this.#doorkeeper.refuse(reply, viewer);
    return handle(request, reply, viewer as never);
  }
}
