// Routes for signing in and out and for confirming an email address. A wrong password, an unknown address and an
// unconfirmed one get the same response, after one password hash each.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ConsoleContext } from '../console-context.ts';
import {
  confirmEmailPage,
  httpsRequiredPage,
  invalidLinkPage,
  type SignInView,
  signInPage,
} from '../pages/credentials.ts';
import { WHOLE_FORM } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, noticeOf, pathField, redirectTo, sendPage } from '../request-reply.ts';
import { clearCookie, setCookie } from '../session-cookie.ts';

/** Longer input is not hashed: no address and no password has as many characters. */
const CREDENTIALS_CHARACTERS_MAX = 1_000;

const NOTICES: Readonly<Record<string, string>> = {
  'signed-up': 'You can now sign in. If you already had an account with this address, use its existing password.',
  'check-inbox': 'Check your inbox: we sent you an email with the next step.',
  'reset-sent': 'If this address has an account, we sent it a link to reset the password.',
  'password-set': 'Password reset. Sign in with your new password.',
  'signed-out': 'You have signed out.',
};

export function signInRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/sign-in', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    if (await context.viewerOf(request)) return redirectTo(reply, '/console/overview');
    return sendSignIn(context, reply, { state: null, notice: noticeOf(request, NOTICES) });
  });

  on('POST /console/sign-in', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const [email, password] = [formField(request, 'email').trim().toLowerCase(), formField(request, 'password')];
    if (email.length + password.length > CREDENTIALS_CHARACTERS_MAX)
      return sendRefusal(context, reply, email.slice(0, CREDENTIALS_CHARACTERS_MAX));
    const { users } = await context.identity();
    const userId = await attemptPassword(context, request, reply, email, () => users.authenticate({ email, password }));
    if (userId === undefined) return reply;
    return userId === null ? sendRefusal(context, reply, email) : signIn(context, request, reply, userId);
  });

  on('POST /console/sign-out', async (request, reply) => {
    const cookie = context.cookieFor(request);
    const token = context.sessionTokenOf(request);
    if (token !== null) await (await context.identity()).sessions.end(token);
    if (cookie !== null) reply.header('set-cookie', clearCookie(cookie));
    return redirectTo(reply, '/console/sign-in?notice=signed-out');
  });
}

/** Registered only with a mail server. */
export function confirmEmailRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/verify/:token', async (request, reply) => {
    const token = pathField(request, 'token');
    const email = await (await context.identity()).users.emailOfLink('confirm-email', token);
    return email === null ? sendInvalidLink(reply) : sendPage(reply, confirmEmailPage({ token, email, state: null }));
  });

  on('POST /console/verify/:token', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const token = pathField(request, 'token');
    const { users } = await context.identity();
    const email = await users.emailOfLink('confirm-email', token);
    if (email === null) return sendInvalidLink(reply);
    const password = formField(request, 'password').slice(0, CREDENTIALS_CHARACTERS_MAX);
    const userId = await attemptPassword(context, request, reply, email, () => users.confirmEmail(token, password));
    if (userId === undefined) return reply;
    if (userId !== null) return signIn(context, request, reply, userId);
    const state = { values: {}, errors: { password: 'Wrong password.' } };
    return sendPage(reply, confirmEmailPage({ token, email, state }));
  });
}

/**
 * Tries the password of a user within the rate limits.
 *
 * @param attempt resolves to null for a wrong password
 * @returns undefined if there were too many attempts; the response has then been sent
 */
export async function attemptPassword<Result>(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  email: string,
  attempt: () => Promise<Result | null>,
): Promise<Result | null | undefined> {
  const counted = context.attemptOf(request, 'sign-in', email);
  if (await context.isRateLimited(reply, counted)) return undefined;
  const result = await attempt();
  if (result !== null) await (await context.identity()).attempts.succeeded(counted);
  return result;
}

/** Ends the session that the browser had before: an attacker may have planted its cookie (session fixation). */
async function signIn(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply, userId: string) {
  const { sessions } = await context.identity();
  const before = context.sessionTokenOf(request);
  if (before !== null) await sessions.end(before);
  await startSession(context, request, reply, userId);
  return redirectTo(reply, '/console/overview');
}

export async function startSession(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  userId: string,
): Promise<void> {
  const cookie = context.cookieFor(request);
  if (cookie === null) throw new Error('session cookies are never sent unencrypted');
  const { sessions } = await context.identity();
  reply.header('set-cookie', setCookie(cookie, await sessions.begin(userId)));
}

function sendRefusal(context: ConsoleContext, reply: FastifyReply, email: string): Promise<FastifyReply> {
  const error = context.hasMail
    ? "Wrong email or password. If you haven't confirmed your email address yet, check your inbox for a new link."
    : 'Wrong email or password.';
  return sendSignIn(context, reply, { state: { values: { email }, errors: { [WHOLE_FORM]: error } }, notice: null });
}

async function sendSignIn(
  context: ConsoleContext,
  reply: FastifyReply,
  view: Pick<SignInView, 'state' | 'notice'>,
): Promise<FastifyReply> {
  const isSignUpOpen = await (await context.identity()).users.isSignUpOpen();
  return sendPage(reply, signInPage({ ...view, isSignUpOpen, hasMail: context.hasMail }));
}

function sendHttpsRequired(reply: FastifyReply): FastifyReply {
  return sendPage(reply, httpsRequiredPage(), 403);
}

export function sendInvalidLink(reply: FastifyReply): FastifyReply {
  return sendPage(reply, invalidLinkPage(), 404);
}
