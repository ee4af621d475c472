// Prepares a service for the fuzzer: creates an account and an API key, and signs in to the console.

import { randomUUID } from 'node:crypto';
import type { Target } from './fuzzing.ts';
import { schemasOf } from './hostile-bodies.ts';

export const ACCOUNT = 'Acme';
const PASSWORD = 'seven green bottles on a wall';

/** Calls `newKey` after creating the account. */
export async function targetAt(url: string, newKey: () => Promise<string>): Promise<Target> {
  const email = `${randomUUID()}@example.com`;
  await sendForm(`${url}/console/sign-up`, { email, password: PASSWORD, name: ACCOUNT });
  const signedIn = await sendForm(`${url}/console/sign-in`, { email, password: PASSWORD });
  const cookie = signedIn.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ');
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Parameters<typeof schemasOf>[0];
  return { port: Number(new URL(url).port), key: await newKey(), cookie, schemas: schemasOf(document) };
}

async function sendForm(url: string, fields: Readonly<Record<string, string>>): Promise<Response> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });
  if (response.status !== 303) throw new Error(`${url} returned ${response.status} ${await response.text()}`);
  return response;
}
