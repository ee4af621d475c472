// Changing a password, and setting a forgotten one anew by a link that came by mail. Either ends the other sessions.

import type { FastifyReply } from 'fastify';
import { type ConsoleContext, fieldOf, goTo, parameterOf, show } from './console-context.ts';
import type { PasswordContext } from './identity/password-rules.ts';
import type { Viewer } from './identity/sessions.ts';
import { deadLink, forgotPasswordForm, resetPasswordForm } from './pages/forgot-password.ts';
import { type PasswordForm, passwordForm } from './pages/password.ts';
import type { ConsoleRoutes } from './permissions.ts';
import { startSession, tryPassword } from './sign-in-routes.ts';

const RESETS_PER_ADDRESS_MAX = 10;
const RESETS_PER_CLIENT_MAX = 100;

export function passwordRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/password', (request, reply, viewer) => {
    const { notice } = request.query as Record<string, unknown>;
    const isChanged = notice === 'changed';
    const text = isChanged ? 'The password is changed, and all your other sessions have ended.' : null;
    return showPassword(reply, viewer, { errors: {} }, text);
  });

  routes.on('POST /console/password', async (request, reply, viewer) => {
    const { people } = await context.identity();
    const password = fieldOf(request, 'password');
    const wrong = await whatIsWrong(password, viewer);
    if (wrong !== null) return showPassword(reply, viewer, { errors: { password: wrong } });
    const current = fieldOf(request, 'current');
    return tryPassword(context, request, reply, {
      email: viewer.email,
      attempt: async () => ((await people.hasPassword(viewer.userId, current)) ? true : null),
      answer: async (isCurrent) => {
        const errors = { current: 'The current password is wrong.' };
        if (!isCurrent) return showPassword(reply, viewer, { errors });
        await people.setPassword(viewer.userId, password);
        await startSession(context, request, reply, viewer.userId);
        return goTo(reply, '/console/password?notice=changed');
      },
    });
  });
}

/** Only with a mail server. */
export function resetRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/forgot-password', (_request, reply) => showForgot(reply, { email: '' }));

  routes.on('POST /console/forgot-password', async (request, reply) => {
    const { emailOf } = await import('./identity/people.ts');
    const typed = fieldOf(request, 'email');
    const email = emailOf(typed);
    if (email === null) {
      const error = 'Email must be an address, such as ada@example.com.';
      return showForgot(reply, { email: typed, error });
    }
    const subjects = [
      { name: `reset ${email}`, attemptsMax: RESETS_PER_ADDRESS_MAX },
      { name: `reset from ${context.clientOf(request)}`, attemptsMax: RESETS_PER_CLIENT_MAX },
    ];
    if (await context.isTooOften(reply, subjects)) return reply;
    (await context.identity()).people.requestReset(email);
    return goTo(reply, '/console/sign-in?notice=reset-sent');
  });

  routes.on('GET /console/reset-password/:token', async (request, reply) => {
    const token = parameterOf(request, 'token');
    const email = await (await context.identity()).people.emailOfLink('reset', token);
    return email === null ? showDeadLink(reply) : showReset(reply, { token, email });
  });

  routes.on('POST /console/reset-password/:token', async (request, reply) => {
    const { people } = await context.identity();
    const token = parameterOf(request, 'token');
    const email = await people.emailOfLink('reset', token);
    if (email === null) return showDeadLink(reply);
    const password = fieldOf(request, 'password');
    const error = await whatIsWrong(password, { email, accountName: '' });
    if (error !== null) return showReset(reply, { token, email, error });
    if (!(await people.resetPassword(token, password))) return showDeadLink(reply);
    return goTo(reply, '/console/sign-in?notice=password-set');
  });
}

async function whatIsWrong(password: string, known: PasswordContext): Promise<string | null> {
  const { whatIsWrongWithPassword } = await import('./identity/password-rules.ts');
  return whatIsWrongWithPassword(password, known);
}

function showPassword(reply: FastifyReply, viewer: Viewer, form: PasswordForm, notice: string | null = null) {
  return show(reply, { title: 'Change password', viewer, notice, body: passwordForm(form) });
}

function showForgot(reply: FastifyReply, form: Parameters<typeof forgotPasswordForm>[0]) {
  return show(reply, { title: 'Forgotten password', body: forgotPasswordForm(form) });
}

function showReset(reply: FastifyReply, form: Parameters<typeof resetPasswordForm>[0]) {
  return show(reply, { title: 'Set a new password', body: resetPasswordForm(form) });
}

function showDeadLink(reply: FastifyReply): FastifyReply {
  return show(reply.code(404), { title: 'This link does not work', body: deadLink() });
}
