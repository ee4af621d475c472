// How one comes in and goes out. A wrong password, an unknown address and one that is not confirmed get one answer, after
// one hash each.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ConsoleContext, fieldOf, goTo, parameterOf, show } from './console-context.ts';
import type { Subject } from './identity/attempts.ts';
import { deadLink, verifyForm } from './pages/forgot-password.ts';
import { insecure, signInForm } from './pages/sign-in.ts';
import type { ConsoleRoutes } from './permissions.ts';
import { clearCookie, setCookie } from './session.ts';

export const FAILURES_PER_ADDRESS_MAX = 10;
const FAILURES_PER_CLIENT_MAX = 100;

/** Past these nothing is looked at: no address and no password is as long. */
const TYPED_MAX = 1_000;

const NOTICES: Readonly<Record<string, string>> = {
  'signed-up':
    'Thank you. Sign in with the address and the password that you chose. If the address had signed up before, its old password stays.',
  'look-for-mail': 'Thank you. We have sent a mail to that address; it says how to go on.',
  'reset-sent': 'If somebody has signed up with that address, a mail with a link is on its way.',
  'password-set': 'The new password is set. Sign in with it.',
  'signed-out': 'You are signed out.',
};

export function signInRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/sign-in', async (request, reply) => {
    if (context.cookieOf(request) === null) return showInsecure(reply);
    if (await context.viewerOf(request)) return goTo(reply, '/console/overview');
    return showSignIn(context, reply, { email: '', notice: noticeOf(request) });
  });

  routes.on('POST /console/sign-in', async (request, reply) => {
    if (context.cookieOf(request) === null) return showInsecure(reply);
    const [email, password] = [fieldOf(request, 'email').trim().toLowerCase(), fieldOf(request, 'password')];
    if (email.length + password.length > TYPED_MAX) return showRefusal(context, reply, email.slice(0, TYPED_MAX));
    return tryPassword(context, request, reply, {
      email,
      attempt: async () => (await context.identity()).people.authenticate({ email, password }),
      answer: (userId) =>
        userId === null ? showRefusal(context, reply, email) : letIn(context, request, reply, userId),
    });
  });

  routes.on('POST /console/sign-out', async (request, reply) => {
    const cookie = context.cookieOf(request);
    const session = context.sessionOf(request);
    if (session !== null) await (await context.identity()).sessions.end(session);
    if (cookie !== null) reply.header('set-cookie', clearCookie(cookie));
    return goTo(reply, '/console/sign-in?notice=signed-out');
  });
}

/** Confirming an address, by the link of the mail and the password. There is none without a mail server. */
export function verifyRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/verify/:token', async (request, reply) => {
    const token = parameterOf(request, 'token');
    const email = await (await context.identity()).people.emailOfLink('confirm', token);
    if (email === null) return showDeadLink(reply);
    return show(reply, { title: 'Confirm your address', body: verifyForm({ token, email }) });
  });

  routes.on('POST /console/verify/:token', async (request, reply) => {
    if (context.cookieOf(request) === null) return showInsecure(reply);
    const token = parameterOf(request, 'token');
    const { people } = await context.identity();
    const email = await people.emailOfLink('confirm', token);
    if (email === null) return showDeadLink(reply);
    const password = fieldOf(request, 'password').slice(0, TYPED_MAX);
    return tryPassword(context, request, reply, {
      email,
      attempt: () => people.confirm(token, password),
      answer: (userId) => {
        if (userId !== null) return letIn(context, request, reply, userId);
        const body = verifyForm({ token, email, error: 'The password is wrong.' });
        return show(reply, { title: 'Confirm your address', body });
      },
    });
  });
}

/** Lets a password be tried and answered, as long as it is not tried too often. */
export async function tryPassword<Result>(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { email, attempt, answer }: PasswordAttempt<Result>,
): Promise<FastifyReply> {
  const address: Subject = { name: `sign-in ${email}`, attemptsMax: FAILURES_PER_ADDRESS_MAX };
  const client: Subject = { name: `sign-in from ${context.clientOf(request)}`, attemptsMax: FAILURES_PER_CLIENT_MAX };
  if (await context.isTooOften(reply, [address, client])) return reply;
  const result = await attempt();
  if (result !== null) {
    const { attempts } = await context.identity();
    await attempts.forget(address);
    await attempts.giveBack(client);
  }
  return answer(result);
}

export interface PasswordAttempt<Result> {
  /** Whose it would be. */
  readonly email: string;
  /** Null when it is the wrong one. */
  readonly attempt: () => Promise<Result | null>;
  readonly answer: (result: Result | null) => FastifyReply | Promise<FastifyReply>;
}

/** Whatever session the browser had before ends: nobody can have put it there and wait for it to become somebody's. */
async function letIn(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply, userId: string) {
  const { sessions } = await context.identity();
  const before = context.sessionOf(request);
  if (before !== null) await sessions.end(before);
  await startSession(context, request, reply, userId);
  return goTo(reply, '/console/overview');
}

export async function startSession(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  userId: string,
): Promise<void> {
  const cookie = context.cookieOf(request);
  if (cookie === null) throw new Error('a session does not travel in the clear');
  const { sessions } = await context.identity();
  reply.header('set-cookie', setCookie(cookie, await sessions.begin(userId)));
}

function noticeOf({ query }: FastifyRequest): string | null {
  const { notice } = query as Record<string, unknown>;
  return typeof notice === 'string' && Object.hasOwn(NOTICES, notice) ? (NOTICES[notice] as string) : null;
}

function showRefusal(context: ConsoleContext, reply: FastifyReply, email: string): Promise<FastifyReply> {
  const error = context.hasMail
    ? 'The email or the password is wrong, or the address is not confirmed yet: then a mail with a link is on its way.'
    : 'The email or the password is wrong.';
  return showSignIn(context, reply, { email, error });
}

async function showSignIn(
  context: ConsoleContext,
  reply: FastifyReply,
  { email, error, notice = null }: { email: string; error?: string; notice?: string | null },
): Promise<FastifyReply> {
  const maySignUp = await (await context.identity()).people.maySignUp();
  const form = { email, maySignUp, hasMail: context.hasMail, ...(error === undefined ? {} : { error }) };
  return show(reply, { title: 'Sign in', notice, body: signInForm(form) });
}

function showInsecure(reply: FastifyReply): FastifyReply {
  return show(reply.code(403), { title: 'Use https', body: insecure() });
}

function showDeadLink(reply: FastifyReply): FastifyReply {
  return show(reply.code(404), { title: 'This link does not work', body: deadLink() });
}
