// Routes that create a user, by sign-up or by invitation.
//
// With a mail server, the response does not reveal whether the email address belongs to a user. Without a mail server,
// the response does reveal this, because a new user is signed in immediately.

import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SIGN_UP_NAME_MAX } from '../../accounts/membership.ts';
import { isVisible } from '../../accounts/visible-text.ts';
import type { ConsoleContext } from '../console-context.ts';
import { EMAIL_ERROR, normalizedEmail, passwordError } from '../identity/credential-rules.ts';
import type { Invitation } from '../identity/members.ts';
import { byInvitation, isOpen, type Registration, type SignUpOffer } from '../identity/registration.ts';
import type { Credentials } from '../identity/users.ts';
import {
  addressTakenPage,
  cannotJoinPage,
  confirmEmailPage,
  joinPage,
  signUpClosedPage,
  signUpPage,
} from '../pages/credentials.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, pathField, redirectTo, sendPage } from '../request-reply.ts';
import { attemptPassword, CREDENTIALS_CHARACTERS_MAX, sendHttpsRequired, sendInvalidLink, signIn } from './sign-in.ts';

/**
 * The minimum response time for a registration if a mail server is configured. The registration itself takes less time,
 * so the response time does not reveal whether the email address belongs to a user.
 */
const REGISTRATION_MS_MIN = 300;

const ADDRESS_TAKEN = 'This address is already in use. Sign in, or use another address.';

export function signUpRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/sign-up', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    return sendSignUp(reply, await offerFor(context, request), null);
  });

  on('POST /console/sign-up', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const offer = await offerFor(context, request);
    if (!isOpen(offer)) return sendSignUp(reply, offer, null);
    const name = formField(request, 'name').trim();
    const { credentials, email, errors } = readNewCredentials(request, name);
    const refuse = (errors: FormState['errors']) => sendSignUp(reply, offer, { values: { email, name }, errors });
    const error = accountNameError(name);
    if (credentials === null || error !== null) return refuse({ ...errors, name: error });
    if (await context.isRateLimited(reply, context.attemptOf(request, 'sign-up', email))) return reply;
    const { registrations } = await context.identity();
    const claimed = offer.kind === 'first-account' ? offer.account : null;
    const entry = { by: 'sign-up', accountName: name, claimed } as const;
    const registration = await inConstantTime(context, registrations.register(credentials, entry));
    if (registration.result === 'address-taken') return refuse({ email: ADDRESS_TAKEN });
    if (registration.result === 'refused') return sendSignUp(reply, await offerFor(context, request), null);
    return sendRegistered(context, request, reply, registration);
  });
}

export function joinRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/join/:token', async (request, reply) => {
    const token = pathField(request, 'token');
    const invitation = await (await context.identity()).members.invitation(token);
    if (invitation === null) return sendInvalidLink(reply);
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    if (await isSentAway(context, request, reply, invitation)) return reply;
    return sendPage(reply, joinPage({ token, ...invitation, state: null }));
  });

  on('POST /console/join/:token', async (request, reply) => {
    const { members, registrations } = await context.identity();
    const token = pathField(request, 'token');
    const invitation = await members.invitation(token);
    if (invitation === null) return sendInvalidLink(reply);
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    if (await isSentAway(context, request, reply, invitation)) return reply;
    const { credentials, email, errors } = readNewCredentials(request, invitation.accountName);
    const refuse = (errors: FormState['errors']) =>
      sendPage(reply, joinPage({ token, ...invitation, state: { values: { email }, errors } }));
    if (credentials === null) return refuse(errors);
    if (await context.isRateLimited(reply, context.attemptOf(request, 'sign-up', email))) return reply;
    const registration = await inConstantTime(context, registrations.register(credentials, byInvitation(token)));
    if (registration.result === 'address-taken') return refuse({ email: ADDRESS_TAKEN });
    if (registration.result === 'refused') return sendInvalidLink(reply);
    return sendRegistered(context, request, reply, registration);
  });
}

/** Call this only if a mail server is configured. */
export function confirmEmailRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/verify/:token', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const token = pathField(request, 'token');
    const email = await (await context.identity()).registrations.emailOfLink(token);
    return email === null ? sendInvalidLink(reply) : sendPage(reply, confirmEmailPage({ token, email, state: null }));
  });

  on('POST /console/verify/:token', async (request, reply) => {
    if (context.cookieFor(request) === null) return sendHttpsRequired(reply);
    const token = pathField(request, 'token');
    const { registrations } = await context.identity();
    const email = await registrations.emailOfLink(token);
    if (email === null) return sendInvalidLink(reply);
    const password = formField(request, 'password').slice(0, CREDENTIALS_CHARACTERS_MAX);
    const confirm = () => registrations.confirm(token, password);
    const registration = await attemptPassword(context, request, reply, email, confirm);
    if (registration === undefined) return reply;
    if (registration === null) {
      const state = { values: {}, errors: { password: 'Wrong password.' } };
      return sendPage(reply, confirmEmailPage({ token, email, state }));
    }
    if (registration.result === 'address-taken') return sendPage(reply, addressTakenPage());
    if (registration.result === 'refused') return sendInvalidLink(reply);
    return sendRegistered(context, request, reply, registration);
  });
}

/**
 * If the viewer is signed in, sends a page that explains why the viewer cannot use the invitation.
 *
 * @returns false if the viewer is not signed in
 */
async function isSentAway(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  invitation: Invitation,
): Promise<boolean> {
  const viewer = await context.viewerOf(request);
  if (viewer === null) return false;
  sendPage(reply, cannotJoinPage(invitation, viewer, viewer.account === invitation.account));
  return true;
}

async function offerFor(context: ConsoleContext, request: FastifyRequest): Promise<SignUpOffer> {
  return (await context.identity()).registrations.offer(context.isLocal(request));
}

function sendSignUp(reply: FastifyReply, offer: SignUpOffer, state: FormState | null): FastifyReply {
  if (!isOpen(offer)) return sendPage(reply, signUpClosedPage(offer.kind === 'link-only'), 403);
  return sendPage(reply, signUpPage(offer.kind === 'first-account' ? offer.name : null, state));
}

interface NewCredentials {
  readonly credentials: Credentials | null;
  /** The normalized address, or the entered text if it is not a valid address. */
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

export function accountNameError(name: string): string | null {
  if (!isVisible(name)) return 'Enter a name.';
  if ([...name].length > SIGN_UP_NAME_MAX) return `Use at most ${SIGN_UP_NAME_MAX} characters.`;
  return /\p{Cc}/u.test(name) ? 'Use only printable characters.' : null;
}

async function inConstantTime<Result>({ hasMail }: ConsoleContext, work: Promise<Result>): Promise<Result> {
  const [result] = await Promise.all([work, hasMail ? sleep(REGISTRATION_MS_MIN) : null]);
  return result;
}

async function sendRegistered(
  context: ConsoleContext,
  request: FastifyRequest,
  reply: FastifyReply,
  registration: Extract<Registration, { result: 'user' | 'mailed' }>,
): Promise<FastifyReply> {
  if (registration.result === 'mailed') return redirectTo(reply, '/console/sign-in?notice=check-inbox');
  await signIn(context, request, reply, registration.userId);
  return redirectTo(reply, '/console/overview');
}
