// Tests that `verifyWebhook` accepts valid webhooks, as Standard Webhooks specifies, and refuses changed, old and
// malformed ones.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { verifyWebhook, type WebhookHeaders, WebhookVerificationError } from '../../client/src/scrip.ts';
import { signatureHeaders } from '../../src/events/webhooks/signature.ts';
import { headersOf, signatureOf } from './sign-webhook.ts';
import { VECTOR, VECTOR_HEADERS } from './webhook-vector.ts';

const SENT = new Date(VECTOR.timestamp * 1_000);

const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`;
const SECRET = newSecret();
const EVENT = {
  id: 'evt_0f3b8c1d5e7a92640b1c2d3e4f5a6b7c',
  type: 'balance.low',
  timestamp: '2026-11-20T08:00:14.123Z',
  data: { end_user_id: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', previous_balance: 20, threshold: '20', balance: 5 },
};
const BODY = JSON.stringify(EVENT);
const now = () => Math.floor(Date.now() / 1_000);
const signed = <Body extends string | Uint8Array = string>(timestamp = now(), body = BODY as Body) => ({
  id: EVENT.id,
  timestamp,
  body,
});

async function refusal(headers: WebhookHeaders, body = BODY, secret: string | readonly string[] = SECRET, at?: Date) {
  const error = await verifyWebhook(headers, body, secret, at ? { now: at } : {}).then(
    () => assert.fail('the webhook was accepted'),
    (error: unknown) => error,
  );
  assert(error instanceof WebhookVerificationError, String(error));
  assert.equal(error.name, 'WebhookVerificationError');
  for (const each of [secret].flat()) assert(!`${error.stack}`.includes(each), 'the error does not contain the secret');
  return error.message;
}

test('the client accepts the test vector of Standard Webhooks, and refuses it after any change', async () => {
  const { secret, id, timestamp, body, signature } = VECTOR;
  const headers = VECTOR_HEADERS;
  assert.deepEqual(await verifyWebhook(headers, body, secret, { now: SENT }), { test: 2432232314 });
  assert.equal(signatureOf(VECTOR, secret), signature, 'control: signatureOf computes the published signature');
  const changed: readonly (readonly [WebhookHeaders, string, string])[] = [
    [{ ...headers, 'webhook-id': `${id}x` }, body, secret],
    [{ ...headers, 'webhook-timestamp': String(timestamp + 1) }, body, secret],
    [{ ...headers, 'webhook-signature': signature.replace('g0', 'g1') }, body, secret],
    [{ ...headers, 'webhook-signature': signature.replace('v1,', 'v2,') }, body, secret],
    [{ ...headers, 'webhook-signature': signature.slice(3) }, body, secret],
    [{ ...headers, 'webhook-signature': 'v1,' }, body, secret],
    [{ ...headers, 'webhook-signature': 'v1,?' }, body, secret],
    [headers, `${body} `, secret],
    [headers, body, newSecret()],
  ];
  for (const [index, [otherHeaders, otherBody, otherSecret]] of changed.entries())
    assert.match(await refusal(otherHeaders, otherBody, otherSecret, SENT), /^No signature/, String(index));
});

test('the client accepts webhooks that Scrip signs with one secret or with two', async () => {
  const [old, next] = [newSecret(), newSecret()];
  for (const secrets of [[next], [next, old]]) {
    const headers = signatureHeaders(signed(), secrets);
    for (const secret of secrets) assert.deepEqual(await verifyWebhook(headers, BODY, secret), EVENT);
    assert.match(await refusal(headers, BODY, newSecret()), /^No signature/);
  }
});

test('the client accepts headers as Headers or plain objects, with names in any letter case, and bodies as text or bytes', async () => {
  const plain = headersOf(signed(), SECRET);
  const capitals = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), value]));
  const arrays = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, [value]]));
  for (const headers of [plain, capitals, arrays, new Headers(plain), { ...plain, host: undefined, get: 'x' }])
    assert.deepEqual(await verifyWebhook(headers, BODY, SECRET), EVENT);
  const bytes = new TextEncoder().encode(BODY);
  const foreign = runInContext(`Uint8Array.from([${bytes}])`, createContext());
  const part = new Uint8Array([0, ...bytes, 0]).subarray(1, -1);
  for (const body of [bytes, Buffer.from(BODY), bytes.buffer, foreign, foreign.buffer, part])
    assert.deepEqual(await verifyWebhook(plain, body, SECRET), EVENT);
});

test('the client verifies the bytes of a body that is not ASCII, and refuses changed bytes', async () => {
  const body = JSON.stringify({ ...EVENT, note: 'zu wenig – 5 €' });
  const bytes = new TextEncoder().encode(body);
  const headers = headersOf(signed(now(), bytes), SECRET);
  for (const same of [body, bytes]) assert.deepEqual(await verifyWebhook(headers, same, SECRET), JSON.parse(body));
  const decodedWrongly = Buffer.from(bytes).toString('latin1');
  assert.match(await refusal(headers, decodedWrongly), /^No signature/);
});

test('if a webhook has several signatures or the client has several secrets, one valid signature is enough', async () => {
  const [old, next] = [newSecret(), newSecret()];
  const both = headersOf(signed(), next, old);
  for (const secret of [old, next, [old], [newSecret(), next]])
    assert.deepEqual(await verifyWebhook(both, BODY, secret), EVENT);
  const others = { ...both, 'webhook-signature': `v1a,AAAA v1,AAAA ${both['webhook-signature']} x` };
  assert.deepEqual(await verifyWebhook(others, BODY, old), EVENT);
  assert.match(await refusal(headersOf(signed(), next), BODY, [old, newSecret()]), /^No signature/);
});

test('the client refuses a webhook whose timestamp is more than five minutes in the past or in the future', async () => {
  const { timestamp, secret, body, id } = { ...VECTOR, secret: SECRET, body: BODY, id: EVENT.id };
  const headers = headersOf({ id, timestamp, body }, secret);
  const at = (seconds: number) => new Date((timestamp + seconds) * 1_000);
  for (const seconds of [-300, 0, 300, 300.9])
    assert.deepEqual(await verifyWebhook(headers, body, secret, { now: at(seconds) }), EVENT);
  assert.match(await refusal(headers, body, secret, at(301)), /more than five minutes ago/);
  assert.match(await refusal(headers, body, secret, at(-301)), /more than five minutes in the future/);
  assert.match(await refusal(headers, body, secret), /more than five minutes ago/);
});

test('the client refuses a webhook if a header is missing or repeated, the timestamp is invalid, or the body is not JSON', async () => {
  const headers = headersOf(signed(), SECRET);
  for (const name of Object.keys(headers)) {
    const missing = `The ${name} header is missing.`;
    assert.equal(await refusal({ ...headers, [name]: undefined }), missing);
    assert.equal(await refusal({ ...headers, [name]: '' }), missing);
    const without = new Headers(headers);
    without.delete(name);
    assert.equal(await refusal(without), missing);
    assert.equal(await refusal({ ...headers, [name]: ['1', '2'] }), `The ${name} header occurs more than once.`);
  }
  for (const timestamp of ['soon', '-1', '1.5', '1e9', ' 1'])
    assert.match(await refusal({ ...headers, 'webhook-timestamp': timestamp }), /is not a Unix time in seconds/);
  assert.equal(await refusal(headersOf(signed(now(), 'no JSON'), SECRET), 'no JSON'), 'The body is not JSON.');
});

test('verifyWebhook throws a TypeError if the body is parsed JSON or the secret is invalid; the error does not contain the secret', async () => {
  const headers = headersOf(signed(), SECRET);
  for (const secret of ['', 'whsec_', SECRET.slice(6), 'whsec_???', [], [SECRET, 'x'], undefined as never])
    await assert.rejects(verifyWebhook(headers, BODY, secret), (error: Error) => {
      assert(error instanceof TypeError, String(error));
      assert(!error.message.includes(SECRET.slice(6)));
      return true;
    });
  await assert.rejects(verifyWebhook(headers, EVENT as never, SECRET), /not parsed JSON/);
});
