// Routes that change a password: that of the viewer, and a forgotten one by a mailed link. Both end all other sessions.

import type { FastifyReply } from 'fastify';
import type { ConsoleContext } from '../console-context.ts';
import { EMAIL_ERROR, normalizedEmail, passwordError } from '../identity/credential-rules.ts';
import type { Viewer } from '../layout.ts';
import { changePasswordPage, forgotPasswordPage, resetPasswordPage } from '../pages/credentials.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, noticeOf, pathField, redirectTo, sendPage } from '../request-reply.ts';
import { attemptPassword, sendInvalidLink, startSession } from './sign-in.ts';

const NOTICES = { changed: 'Password changed. You have been signed out everywhere else.' };

export function passwordRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/password', (request, reply, viewer) =>
    sendPage(reply, changePasswordPage(null, { viewer, notice: noticeOf(request, NOTICES) })),
  );

  on('POST /console/password', async (request, reply, viewer) => {
    const { users } = await context.identity();
    const password = formField(request, 'password');
    const error = passwordError(password, viewer);
    if (error !== null) return sendRefusedChange(reply, viewer, { password: error });
    const current = formField(request, 'current');
    const isCurrent = await attemptPassword(context, request, reply, viewer.email, async () =>
      (await users.hasPassword(viewer.userId, current)) ? true : null,
    );
    if (isCurrent === undefined) return reply;
    if (isCurrent === null) return sendRefusedChange(reply, viewer, { current: 'Wrong password.' });
    await users.setPassword(viewer.userId, password);
    await startSession(context, request, reply, viewer.userId);
    return redirectTo(reply, '/console/password?notice=changed');
  });
}

/** Registered only with a mail server. */
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
    const token = pathField(request, 'token');
    const email = await (await context.identity()).users.emailOfLink('reset-password', token);
    return email === null ? sendInvalidLink(reply) : sendPage(reply, resetPasswordPage({ token, email, state: null }));
  });

  on('POST /console/reset-password/:token', async (request, reply) => {
    const { users } = await context.identity();
    const token = pathField(request, 'token');
    const email = await users.emailOfLink('reset-password', token);
    if (email === null) return sendInvalidLink(reply);
    const password = formField(request, 'password');
    const error = passwordError(password, { email, accountName: '' });
    if (error !== null)
      return sendPage(reply, resetPasswordPage({ token, email, state: { values: {}, errors: { password: error } } }));
    if (!(await users.resetPassword(token, password))) return sendInvalidLink(reply);
    return redirectTo(reply, '/console/sign-in?notice=password-set');
  });
}

function sendRefusedChange(reply: FastifyReply, viewer: Viewer, errors: FormState['errors']): FastifyReply {
  return sendPage(reply, changePasswordPage({ values: {}, errors }, { viewer, notice: null }));
}
