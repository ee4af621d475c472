// Routes for signing in and out. A sign-in with a wrong password takes the same time and gets the same response as a
// sign-in with an unknown email address.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ConsoleContext } from '../console-context.ts';
import { isOpen } from '../identity/registration.ts';
import { browserOf } from '../identity/sessions.ts';
import type { Viewer } from '../layout.ts';
import { httpsRequiredPage, invalidLinkPage, type SignInView, signInPage } from '../pages/credentials.ts';
import { WHOLE_FORM } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, noticeOf, redirectTo, sendPage } from '../request-reply.ts';
import { clearCookie, setCookie } from '../session-cookie.ts';

/**
 * Maximum length of an email address and a password together. Longer input cannot be valid, so Scrip refuses it without
 * computing a password hash.
 */
export const CREDENTIALS_CHARACTERS_MAX = 1_000;

const NOTICES: Readonly<Record<string, string>> = {
  'check-inbox':
    'Check your inbox: we sent you an email with the next step. If the email does not arrive within a few minutes, submit the form again. We send at most five such emails in 15 minutes.',
  'reset-sent':
    'If the email address that you entered belongs to a user, we sent a password reset link to it. Check your inbox.',
  'password-set': 'Password reset. Sign in with your new password.',
  'signed-out': 'You have signed out.',
  left: 'You have left the account, and your console user has been deleted.',
  'session-ended': 'Nothing was changed, because your session has ended. Sign in, and fill in the form again.',
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
    const user = await attemptPassword(context, request, reply, email, () => users.authenticate({ email, password }));
    if (user === undefined) return reply;
    if (user === null) return sendRefusal(context, reply, email);
    const isSignedIn = await signIn(context, request, reply, user.id, user.password_hash);
    return isSignedIn ? redirectTo(reply, '/console/overview') : sendRefusal(context, reply, email);
  });

  on('POST /console/sign-out', async (request, reply) => {
    const cookie = context.cookieFor(request);
    const token = context.sessionTokenOf(request);
    if (token !== null) await (await context.identity()).sessions.end(token);
    if (cookie !== null) reply.header('set-cookie', clearCookie(cookie));
    return redirectTo(reply, '/console/sign-in?notice=signed-out');
  });
}

/**
 * Calls `attempt`. After too many attempts to sign in, sends an error response instead.
 *
 * @param attempt checks a password, and resolves to null if the password is wrong
 * @param viewer the user who is signed in; null on the sign-in page
 * @returns the result of `attempt`; undefined if there were too many attempts
 */
export async function attemptPassword<Result>(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  email: string,
  attempt: () => Promise<Result | null>,
  viewer: Viewer | null = null,
): Promise<Result | null | undefined> {
  const counted = context.attemptOf(request, 'sign-in', email);
  if (await context.isRateLimited(reply, counted, viewer)) return undefined;
  const result = await attempt();
  if (result !== null) await (await context.identity()).attempts.succeeded(counted);
  return result;
}

/**
 * Begins a session. Ends the browser's previous session, because an attacker might have set the session cookie (session
 * fixation).
 *
 * @param passwordHash see `Sessions.begin`
 * @returns false if the password has changed
 */
export async function signIn(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  userId: string,
  passwordHash: string | null = null,
): Promise<boolean> {
  const cookie = context.cookieFor(request);
  if (cookie === null) throw new Error('session cookies are sent only over HTTPS or to loopback addresses');
  const { sessions } = await context.identity();
  const before = context.sessionTokenOf(request);
  if (before !== null) await sessions.end(before);
  const token = await sessions.begin(userId, browserOf(request.headers['user-agent']), passwordHash);
  if (token !== null) reply.header('set-cookie', setCookie(cookie, token));
  return token !== null;
}

function sendRefusal(context: ConsoleContext, reply: FastifyReply, email: string): Promise<FastifyReply> {
  const error = context.hasMail
    ? "Wrong email or password. If you haven't confirmed your email address yet, open the link in the email that we sent you."
    : 'Wrong email or password.';
  return sendSignIn(context, reply, { state: { values: { email }, errors: { [WHOLE_FORM]: error } }, notice: null });
}

async function sendSignIn(
  context: ConsoleContext,
  reply: FastifyReply,
  view: Pick<SignInView, 'state' | 'notice'>,
): Promise<FastifyReply> {
  const { registrations } = await context.identity();
  const isSignUpOpen = isOpen(await registrations.offer(context.isLocal(reply.request)));
  return sendPage(reply, signInPage({ ...view, isSignUpOpen, hasMail: context.hasMail }));
}

export function sendHttpsRequired(reply: FastifyReply): FastifyReply {
  return sendPage(reply, httpsRequiredPage(), 403);
}

export function sendInvalidLink(reply: FastifyReply): FastifyReply {
  return sendPage(reply, invalidLinkPage(), 404);
}
