// What somebody who signs up or joins has typed, checked: the address, and the password that goes with it.

import type { FastifyRequest } from 'fastify';
import { fieldOf } from './console-context.ts';
import type { Credentials } from './identity/people.ts';

/** As long as either outcome takes, with room to spare: what is written and what is not must not be told apart by the time. */
const ANSWER_MS = 300;

export interface NewCredentials {
  readonly credentials: Credentials | null;
  /** As it was typed. */
  readonly email: string;
  readonly errors: { readonly email?: string; readonly password?: string };
}

export async function newCredentialsOf(request: FastifyRequest, accountName: string): Promise<NewCredentials> {
  // With what it imports, part of what is loaded when it is needed.
  const { emailOf } = await import('./identity/people.ts');
  const { whatIsWrongWithPassword } = await import('./identity/password-rules.ts');
  const typed = fieldOf(request, 'email');
  const password = fieldOf(request, 'password');
  const email = emailOf(typed);
  const wrong = whatIsWrongWithPassword(password, { email: email ?? '', accountName });
  if (email !== null && wrong === null) return { credentials: { email, password }, email, errors: {} };
  return {
    credentials: null,
    email: typed,
    errors: {
      ...(email === null ? { email: 'Email must be an address, such as ada@example.com.' } : {}),
      ...(wrong === null ? {} : { password: wrong }),
    },
  };
}

/** Answers of which the time must not tell anything take at least this long. */
export async function inEqualTime<Result>(work: Promise<Result>): Promise<Result> {
  const pause = new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
  const [result] = await Promise.all([work, pause]);
  return result;
}
