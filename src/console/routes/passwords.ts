// Routes that let a user reset a forgotten password through an emailed link.

import type { ConsoleContext } from '../console-context.ts';
import { EMAIL_ERROR, normalizedEmail, passwordError } from '../identity/credential-rules.ts';
import { forgotPasswordPage, resetPasswordPage } from '../pages/credentials.ts';
import type { On } from '../permissions.ts';
import { formField, pathField, redirectTo, sendPage } from '../request-reply.ts';
import { sendHttpsRequired, sendInvalidLink } from './sign-in.ts';

/** Call this only if a mail server is configured. */
export function passwordResetRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/forgot-password', (_request, reply) => sendPage(reply, forgotPasswordPage(null)));

  on('POST /console/forgot-password', async (request, reply) => {
    const entered = formField(request, 'email');
    const email = normalizedEmail(entered);
    if (email === null)
      return sendPage(reply, forgotPasswordPage({ values: { email: entered }, errors: { email: EMAIL_ERROR } }));
    if (await context.isRateLimited(reply, context.attemptOf(request, 'reset', email))) return reply;
    (await context.identity()).users.requestPasswordReset(email);
    return redirectTo(reply, '/console/sign-in?notice=reset-sent');
  });

  on('GET /console/reset-password/:token', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const token = pathField(request, 'token');
    const user = await (await context.identity()).users.userOfResetLink(token);
    if (user === null) return sendInvalidLink(reply);
    return sendPage(reply, resetPasswordPage({ token, email: user.email, state: null }));
  });

  on('POST /console/reset-password/:token', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const { users } = await context.identity();
    const token = pathField(request, 'token');
    const user = await users.userOfResetLink(token);
    if (user === null) return sendInvalidLink(reply);
    const { email } = user;
    const password = formField(request, 'password');
    const error = passwordError(password, user);
    if (error !== null)
      return sendPage(reply, resetPasswordPage({ token, email, state: { values: {}, errors: { password: error } } }));
    if (!(await users.resetPassword(token, password))) return sendInvalidLink(reply);
    return redirectTo(reply, '/console/sign-in?notice=password-set');
  });
}
