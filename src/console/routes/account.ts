// Routes for the account's name, and for the viewer's own password, sessions and color scheme.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ConsoleContext } from '../console-context.ts';
import { passwordError } from '../identity/credential-rules.ts';
import { THEMES, type Viewer } from '../layout.ts';
import { type AccountView, accountPage } from '../pages/account.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, noticeOf, redirectTo, sendPage } from '../request-reply.ts';
import { readTheme, setTheme } from '../session-cookie.ts';
import { attemptPassword, signIn } from './sign-in.ts';
import { accountNameError } from './sign-up.ts';

const PATH = '/console/account';

const NOTICES = {
  renamed: 'Account renamed.',
  taken: 'Account renamed. Another account has this name, so Scrip added a suffix.',
  password: 'Password changed. You have been signed out everywhere else.',
  ended: 'Signed out elsewhere. You are still signed in here.',
  theme: 'Appearance changed.',
  role: 'Role changed. You are now a member. Pending invitations that you created no longer work.',
} as const;

export function accountRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/account', (request, reply, viewer) =>
    sendAccount(context, request, reply, { viewer, refused: null }),
  );

  on('POST /console/account/name', async (request, reply, viewer) => {
    const name = formField(request, 'name').trim();
    const error = accountNameError(name);
    if (error !== null) {
      const state = { values: { name }, errors: { name: error } };
      return sendAccount(context, request, reply, { viewer, refused: { form: 'name', state } });
    }
    const renamed = await (await context.identity()).members.rename(viewer.account, name);
    return done(reply, renamed === name ? 'renamed' : 'taken');
  });

  on('POST /console/account/password', async (request, reply, viewer) => {
    const { users } = await context.identity();
    const refuse = (errors: FormState['errors']) =>
      sendAccount(context, request, reply, { viewer, refused: { form: 'password', state: { values: {}, errors } } });
    const password = formField(request, 'password');
    const current = formField(request, 'current');
    const errors = {
      current: current === '' ? 'Enter your current password.' : null,
      password: passwordError(password, viewer),
    };
    if (errors.current !== null || errors.password !== null) return refuse(errors);
    const check = async () => ((await users.hasPassword(viewer.userId, current)) ? true : null);
    const isCurrent = await attemptPassword(context, request, reply, viewer.email, check, viewer);
    if (isCurrent === undefined) return reply;
    if (isCurrent === null) return refuse({ current: 'Wrong password.' });
    await users.setPassword(viewer.userId, password);
    await signIn(context, request, reply, viewer.userId);
    return done(reply, 'password');
  });

  on('POST /console/account/sessions/end', async (request, reply, viewer) => {
    const { sessions } = await context.identity();
    const token = context.sessionTokenOf(request) ?? '';
    await sessions.endOther(viewer.userId, formField(request, 'session') || null, token);
    return done(reply, 'ended');
  });

  on('POST /console/account/theme', (request, reply) => {
    const wanted = formField(request, 'theme');
    const theme = THEMES.find((one) => one === wanted);
    if (theme !== undefined) reply.header('set-cookie', setTheme(theme, context.cookieFor(request)));
    return done(reply, 'theme');
  });
}

async function sendAccount(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { viewer, refused }: { viewer: Viewer; refused: AccountView['refused'] },
): Promise<FastifyReply> {
  const { sessions } = await context.identity();
  const list = await sessions.list(viewer.userId, context.sessionTokenOf(request) ?? '');
  const view = { sessions: list, theme: readTheme(request.headers.cookie), refused };
  const notice = refused === null ? noticeOf(request, NOTICES) : null;
  return sendPage(reply, accountPage(view, { viewer, notice }));
}

function done(reply: FastifyReply, notice: keyof typeof NOTICES): FastifyReply {
  return redirectTo(reply, `${PATH}?notice=${notice}`);
}
