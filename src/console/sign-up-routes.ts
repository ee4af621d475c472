// How one gets in for the first time: by signing up, which makes an account, or by an invitation to one. Neither signs
// in: the answer is the same whether or not the address was known, and only who knows the password learns more.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { SIGN_UP_NAME_MAX } from '../accounts/membership.ts';
import { type ConsoleContext, fieldOf, goTo, parameterOf, show } from './console-context.ts';
import { inEqualTime, newCredentialsOf } from './new-credentials.ts';
import { deadLink } from './pages/forgot-password.ts';
import { type JoinForm, joinForm } from './pages/join.ts';
import { type SignUpForm, signUpClosed, signUpForm } from './pages/sign-up.ts';
import type { ConsoleRoutes } from './permissions.ts';

const PER_ADDRESS_MAX = 10;
const PER_CLIENT_MAX = 100;

export function signUpRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/sign-up', async (_request, reply) => {
    const { people } = await context.identity();
    if (!(await people.maySignUp())) return showClosed(reply);
    return showSignUp(reply, { email: '', name: '', errors: {} });
  });

  routes.on('POST /console/sign-up', async (request, reply) => {
    const { people } = await context.identity();
    if (!(await people.maySignUp())) return showClosed(reply);
    const name = fieldOf(request, 'name').trim();
    const { credentials, email, errors } = await newCredentialsOf(request, name);
    const wrong = whatIsWrongWithName(name);
    if (credentials === null || wrong !== null) {
      const named = wrong === null ? errors : { ...errors, name: wrong };
      return showSignUp(reply, { email, name, errors: named });
    }
    if (await isTooOften(context, request, reply, credentials.email)) return reply;
    const isOpen = await inEqualTime(people.signUp(credentials, name));
    return isOpen ? goTo(reply, `/console/sign-in?notice=${noticeOf(context)}`) : showClosed(reply);
  });

  routes.on('GET /console/join/:token', async (request, reply) => {
    const token = parameterOf(request, 'token');
    const invitation = await (await context.identity()).members.invitation(token);
    if (invitation === null) return showDeadLink(reply);
    return showJoin(reply, { token, ...invitation, email: '', errors: {} });
  });

  routes.on('POST /console/join/:token', async (request, reply) => {
    const { people, members } = await context.identity();
    const token = parameterOf(request, 'token');
    const invitation = await members.invitation(token);
    if (invitation === null) return showDeadLink(reply);
    const { credentials, email, errors } = await newCredentialsOf(request, invitation.accountName);
    if (credentials === null) return showJoin(reply, { token, ...invitation, email, errors });
    if (await isTooOften(context, request, reply, credentials.email)) return reply;
    const isGood = await inEqualTime(people.join(credentials, token));
    return isGood ? goTo(reply, `/console/sign-in?notice=${noticeOf(context)}`) : showDeadLink(reply);
  });
}

function whatIsWrongWithName(name: string): string | null {
  if (name === '') return 'Name must say something.';
  if (name.length > SIGN_UP_NAME_MAX) return `Name may have at most ${SIGN_UP_NAME_MAX} characters.`;
  return /\p{Cc}/u.test(name) ? 'Name must not have control characters in it.' : null;
}

/** Each may lead to a mail, and computes a hash. */
function isTooOften(context: ConsoleContext, request: FastifyRequest, reply: FastifyReply, email: string) {
  return context.isTooOften(reply, [
    { name: `sign-up ${email}`, attemptsMax: PER_ADDRESS_MAX },
    { name: `sign-up from ${context.clientOf(request)}`, attemptsMax: PER_CLIENT_MAX },
  ]);
}

function noticeOf({ hasMail }: ConsoleContext): string {
  return hasMail ? 'look-for-mail' : 'signed-up';
}

function showSignUp(reply: FastifyReply, form: SignUpForm): FastifyReply {
  return show(reply, { title: 'Sign up', body: signUpForm(form) });
}

function showClosed(reply: FastifyReply): FastifyReply {
  return show(reply.code(403), { title: 'Sign up', body: signUpClosed() });
}

function showJoin(reply: FastifyReply, form: JoinForm): FastifyReply {
  return show(reply, { title: 'Join', body: joinForm(form) });
}

function showDeadLink(reply: FastifyReply): FastifyReply {
  return show(reply.code(404), { title: 'This link does not work', body: deadLink() });
}
