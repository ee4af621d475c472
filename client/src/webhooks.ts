// Verifies webhooks according to the Standard Webhooks specification, https://www.standardwebhooks.com. The code uses
// only APIs that all JavaScript runtimes have, such as Web Crypto and text encoding.

import type { Event, WebhookTestEvent } from './generated.ts';

/** The event in the body of a webhook. Scrip sends `webhook.test` only to test an endpoint. */
export type WebhookEvent = Event | WebhookTestEvent;

/** The headers of a request: `Headers`, or an object such as Node's `request.headers`. Names are case-insensitive. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Used instead of the current time, in tests. */
  readonly now?: Date | undefined;
}

/**
 * The request is not from Scrip, was changed in transit, or was signed more than five minutes ago. Respond with 400,
 * and ignore the body.
 */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

const TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = 'whsec_';
const SIGNATURE_PREFIX = 'v1,';
const SIGNATURE_BYTES = 32;
/** Scrip signs with at most five secrets. Each further signature would cost another pass over the body. */
const SIGNATURES_MAX = 8;

/**
 * Verifies the signature of a webhook, and returns the event.
 *
 * @param body the body exactly as you received it, as bytes or text, not as parsed JSON
 * @param secret the endpoint's secret, `whsec_…`, or several secrets, one of which must match
 * @throws {WebhookVerificationError} if a header is missing, no signature matches, the timestamp differs from the
 *   current time by more than five minutes, or the body is not JSON
 * @throws {TypeError} if `body` or `secret` is invalid; the message never contains the secret
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
  secret: string | readonly string[],
  { now = new Date() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const keys = [secret].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError('secret must not be empty.');
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ').flatMap(signatureIn).slice(0, SIGNATURES_MAX);
  assertRecent(timestamp, now);
  const bytes = bytesOf(body);
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  if (!(await isSigned(signed, signatures, keys)))
    throw new WebhookVerificationError(
      "No signature in webhook-signature matches the body and the secret. Pass the endpoint's secret, and the body exactly as it was received.",
    );
  return eventIn(bytes);
}

/** Returns whether one of the keys verifies one of the signatures. Web Crypto compares signatures in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array<ArrayBuffer>[],
  keys: readonly Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  for (const key of keys) {
    const hmac = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
    for (const signature of signatures) if (await crypto.subtle.verify('HMAC', hmac, signature, signed)) return true;
  }
  return false;
}

/** @throws {WebhookVerificationError} if the header is missing, or occurs more than once */
function headerOf(headers: WebhookHeaders, name: string): string {
  const value = isHeaders(headers) ? headers.get(name) : valueIn(headers, name);
  if (value === null || value === '') throw new WebhookVerificationError(`The ${name} header is missing.`);
  return value;
}

function isHeaders(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

function valueIn(headers: Readonly<Record<string, string | readonly string[] | undefined>>, name: string) {
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? value : [],
  );
  if (values.length > 1) throw new WebhookVerificationError(`The ${name} header occurs more than once.`);
  return values[0] ?? null;
}

function assertRecent(timestamp: string, now: Date): void {
  if (!/^\d{1,12}$/.test(timestamp))
    throw new WebhookVerificationError('The webhook-timestamp header is not a Unix time in seconds.');
  const age = Math.floor(now.getTime() / 1_000) - Number(timestamp);
  if (age > TOLERANCE_SECONDS)
    throw new WebhookVerificationError(
      'The webhook was sent more than five minutes ago. Check the clock of this machine.',
    );
  if (age < -TOLERANCE_SECONDS)
    throw new WebhookVerificationError(
      'The timestamp of the webhook is more than five minutes in the future. Check the clock of this machine.',
    );
}

function eventIn(bytes: Uint8Array): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new WebhookVerificationError('The body is not JSON.');
  }
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const text = typeof secret === 'string' && secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : '';
  const key = bytesInBase64(text);
  if (key === null || key.length === 0)
    throw new TypeError('secret must be the secret of a webhook endpoint: whsec_ followed by Base64.');
  return key;
}

/** Ignores signatures of versions other than `v1`, and those of the wrong length. */
function signatureIn(text: string): Uint8Array<ArrayBuffer>[] {
  const signature = text.startsWith(SIGNATURE_PREFIX) ? bytesInBase64(text.slice(SIGNATURE_PREFIX.length)) : null;
  return signature?.length === SIGNATURE_BYTES ? [signature] : [];
}

/** @returns null if the text is not Base64 */
function bytesInBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  // `instanceof` would be false for bytes from another JavaScript realm: some test runners run tests in a separate
  // realm.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') return new Uint8Array(body);
  throw new TypeError('body must be the bytes or the text of the request, not parsed JSON.');
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
