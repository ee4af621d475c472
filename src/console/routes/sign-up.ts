// Routes that create a user: signing up, which also creates an account, and joining an account by invitation. Neither signs
// the user in: the response is the same whether or not the address has an account, and only the password tells.

import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SIGN_UP_NAME_MAX } from '../../accounts/membership.ts';
import type { ConsoleContext } from '../console-context.ts';
import { EMAIL_ERROR, normalizedEmail, passwordError } from '../identity/credential-rules.ts';
import type { Credentials } from '../identity/users.ts';
import { joinPage, signUpClosedPage, signUpPage } from '../pages/credentials.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, pathField, redirectTo, sendPage } from '../request-reply.ts';
import { sendInvalidLink } from './sign-in.ts';

/** Longer than either outcome takes, so that the response time does not tell which one it was. */
const REGISTRATION_MS_MIN = 300;

export function signUpRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/sign-up', async (_request, reply) => {
    const { users } = await context.identity();
    return (await users.isSignUpOpen()) ? sendPage(reply, signUpPage(null)) : sendSignUpClosed(reply);
  });

  on('POST /console/sign-up', async (request, reply) => {
    const { users } = await context.identity();
    if (!(await users.isSignUpOpen())) return sendSignUpClosed(reply);
    const name = formField(request, 'name').trim();
    const { credentials, email, errors } = readNewCredentials(request, name);
    const error = nameError(name);
    if (credentials === null || error !== null)
      return sendPage(reply, signUpPage({ values: { email, name }, errors: { ...errors, name: error } }));
    if (await context.isRateLimited(reply, context.attemptOf(request, 'sign-up', email))) return reply;
    const isOpen = await inConstantTime(users.signUp(credentials, name));
    return isOpen ? redirectToSignIn(context, reply) : sendSignUpClosed(reply);
  });

  on('GET /console/join/:token', async (request, reply) => {
    const token = pathField(request, 'token');
    const invitation = await (await context.identity()).members.invitation(token);
    if (invitation === null) return sendInvalidLink(reply);
    return sendPage(reply, joinPage({ token, ...invitation, state: null }));
  });

  on('POST /console/join/:token', async (request, reply) => {
    const { users, members } = await context.identity();
    const token = pathField(request, 'token');
    const invitation = await members.invitation(token);
    if (invitation === null) return sendInvalidLink(reply);
    const { credentials, email, errors } = readNewCredentials(request, invitation.accountName);
    if (credentials === null)
      return sendPage(reply, joinPage({ token, ...invitation, state: { values: { email }, errors } }));
    if (await context.isRateLimited(reply, context.attemptOf(request, 'sign-up', email))) return reply;
    const isValid = await inConstantTime(users.join(credentials, token));
    return isValid ? redirectToSignIn(context, reply) : sendInvalidLink(reply);
  });
}

interface NewCredentials {
  /** Null when there are errors. */
  readonly credentials: Credentials | null;
  /** As it was entered. */
  readonly email: string;
  readonly errors: FormState['errors'];
}

function readNewCredentials(request: FastifyRequest, accountName: string): NewCredentials {
  const entered = formField(request, 'email');
  const password = formField(request, 'password');
  const email = normalizedEmail(entered);
  const error = passwordError(password, { email: email ?? '', accountName });
  const credentials = email === null || error !== null ? null : { email, password };
  return {
    credentials,
    email: email ?? entered,
    errors: { email: email === null ? EMAIL_ERROR : null, password: error },
  };
}

function nameError(name: string): string | null {
  if (name === '') return 'Enter a name.';
  if (name.length > SIGN_UP_NAME_MAX) return `Use at most ${SIGN_UP_NAME_MAX} characters.`;
  return /\p{Cc}/u.test(name) ? 'Use only characters that can be displayed.' : null;
}

/** Delays the result of signing up or joining, whichever it is, to the same time. */
async function inConstantTime<Result>(work: Promise<Result>): Promise<Result> {
  const [result] = await Promise.all([work, sleep(REGISTRATION_MS_MIN)]);
  return result;
}

function redirectToSignIn({ hasMail }: ConsoleContext, reply: FastifyReply): FastifyReply {
  return redirectTo(reply, `/console/sign-in?notice=${hasMail ? 'check-inbox' : 'signed-up'}`);
}

function sendSignUpClosed(reply: FastifyReply): FastifyReply {
  return sendPage(reply, signUpClosedPage(), 403);
}
