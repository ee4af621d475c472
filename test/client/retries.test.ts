// Tests retries after dropped connections, timeouts, overload and responses from proxies.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ConnectionFailed,
  Internal,
  OutcomeUnknown,
  Overloaded,
  Scrip,
  type ScripOptions,
  StoreUnavailable,
  TimedOut,
  TooManyRequests,
  UnexpectedAnswer,
} from '../../client/src/scrip.ts';
import { eventually } from '../http/running-service.ts';
import {
  type Behavior,
  dropsConnection,
  END_USER,
  HostileScrip,
  refuses,
  responds,
  sends,
  sendsHalf,
  sendsHeadersOnly,
  staysSilent,
} from './hostile-scrip.ts';

const ADDITION = { end_user_id: END_USER, amount: 100 };
const ADDED = { ...ADDITION, transactionId: null };
const HTML = '<html><h1>502 Bad Gateway</h1></html>';

async function startHostile(t: TestContext): Promise<HostileScrip> {
  const hostile = await HostileScrip.start();
  t.after(() => hostile.stop());
  return hostile;
}

function client({ url }: HostileScrip, options: Partial<ScripOptions> = {}): Scrip {
  return new Scrip({ apiKey: 'scrip_write_canary', baseUrl: url, timeoutMs: 10_000, ...options });
}

function keysSent({ received }: HostileScrip): Set<unknown> {
  return new Set(received.map(({ headers }) => headers['idempotency-key']));
}

const TEMPORARY_FAILURES: Readonly<Record<string, readonly Behavior[]>> = {
  'a connection that drops after the write was applied': [dropsConnection],
  'an incomplete response': [sendsHalf],
  'an overloaded service': [refuses(503, 'Overloaded')],
  'a store that is briefly unavailable': [refuses(503, 'StoreUnavailable')],
  'an unknown outcome': [refuses(503, 'OutcomeUnknown')],
  'a rate limit': [refuses(429, 'TooManyRequests', {}, { 'retry-after': '0' })],
  'an unknown error with status 503': [refuses(503, 'Moving')],
  'a proxy that cannot reach the service': [sends(502, HTML, { 'content-type': 'text/html' })],
  'a proxy whose request to the service timed out': [sends(504, '')],
  'three failures in a row': [dropsConnection, refuses(503, 'OutcomeUnknown'), sendsHalf],
};

const LASTING_FAILURES: readonly (readonly [
  failure: string,
  Behavior,
  Class: abstract new (...args: never[]) => Error,
])[] = [
  ['dropped connections', dropsConnection, ConnectionFailed],
  ['refusals by an overloaded service', refuses(503, 'Overloaded'), Overloaded],
  ['store failures', refuses(503, 'StoreUnavailable'), StoreUnavailable],
  ['unknown outcomes', refuses(503, 'OutcomeUnknown'), OutcomeUnknown],
  ['a proxy that cannot reach the service', sends(503, HTML), UnexpectedAnswer],
];

const PERMANENT_FAILURES: readonly (readonly [
  failure: string,
  Behavior,
  Class: abstract new (...args: never[]) => Error,
])[] = [
  ['a fault in the service', refuses(500, 'Internal'), Internal],
  ['a page from a proxy with status 200', sends(200, HTML, { 'content-type': 'text/html' }), UnexpectedAnswer],
  ['an empty response', sends(200, ''), UnexpectedAnswer],
  ['a response that is not JSON', sends(200, '{"end_user_id":'), UnexpectedAnswer],
  ['a JSON response that is not an object', sends(200, 'null'), UnexpectedAnswer],
  ['a JSON response from another service', sends(200, '{"ok":true}'), UnexpectedAnswer],
  ['a JSON error from another service', sends(403, '{"message":"blocked"}'), UnexpectedAnswer],
  ['a JSON error with the same member', sends(500, '{"status":500,"error":"Server Error"}'), UnexpectedAnswer],
  ['a success status that Scrip does not use', sends(204, ''), UnexpectedAnswer],
];

// The tests run concurrently, because they spend most of their time waiting before retries.
describe('retries of the client', { concurrency: 8 }, () => {
  for (const [failure, behaviors] of Object.entries(TEMPORARY_FAILURES)) {
    test(`despite ${failure}, the client adds the credits once, because it retries with the same idempotency key`, async (t) => {
      const hostile = await startHostile(t);
      hostile.behave(...behaviors, responds);
      assert.deepEqual(await client(hostile).add(ADDITION), ADDED);
      assert.equal(hostile.received.length, behaviors.length + 1);
      assert.equal(keysSent(hostile).size, 1);
      assert.equal(hostile.applied.length, 1);
      for (const { body } of hostile.received) assert.deepEqual(body, ADDITION, 'every attempt has the same body');
    });
  }

  for (const [failure, behavior, Class] of LASTING_FAILURES) {
    test(`if every attempt fails because of ${failure}, the error contains the idempotency key for repeating the call`, async (t) => {
      const hostile = await startHostile(t);
      hostile.behave(behavior);
      const error = await client(hostile, { retries: 1 })
        .add(ADDITION)
        .catch((error) => error);
      assert(error instanceof Class, String(error));
      assert.equal(hostile.received.length, 2, 'the call makes one attempt and one retry');
      const { idempotencyKey } = error as ConnectionFailed;
      assert.deepEqual(keysSent(hostile), new Set([idempotencyKey]));
      hostile.behave(responds);
      await client(hostile).add(ADDITION, { idempotencyKey: idempotencyKey as string });
      assert.deepEqual(hostile.applied, [idempotencyKey], 'the second call is the same write');
    });
  }

  test('if a write might have been applied, and its retries are refused without a decision, the error says that the outcome is unknown', async (t) => {
    const hostile = await startHostile(t);
    for (const last of [
      refuses(503, 'StoreUnavailable'),
      refuses(429, 'TooManyRequests'),
      refuses(401, 'Unauthorized'),
    ]) {
      hostile.behave(dropsConnection, last);
      await assert.rejects(client(hostile, { retries: 1 }).add(ADDITION), ConnectionFailed);
    }
    hostile.behave(dropsConnection, refuses(422, 'InvalidField'));
    await assert.rejects(client(hostile, { retries: 1 }).add(ADDITION), { name: 'InvalidField' });
  });

  test('a retry sends the fields that the call was made with, even if the caller has changed the object since', async (t) => {
    const hostile = await startHostile(t);
    hostile.behave(refuses(503, 'Overloaded'), responds);
    const addition = { ...ADDITION };
    const call = client(hostile).add(addition);
    addition.amount += 1;
    await call;
    for (const { body } of hostile.received) assert.deepEqual(body, ADDITION);
  });

  test('a number that JSON cannot represent is refused', async (t) => {
    const hostile = await startHostile(t);
    for (const validity_days of [Number.NaN, Number.POSITIVE_INFINITY])
      await assert.rejects(client(hostile).add({ ...ADDITION, validity_days }), TypeError);
    assert.equal(hostile.received.length, 0);
  });

  for (const [failure, behavior, Class] of PERMANENT_FAILURES) {
    test(`the client does not retry after ${failure}`, async (t) => {
      const hostile = await startHostile(t);
      hostile.behave(behavior, responds);
      await assert.rejects(client(hostile).add(ADDITION), Class);
      assert.equal(hostile.received.length, 1);
    });
  }

  test('the client does not follow redirects, so the API key is not sent to another address', async (t) => {
    const hostile = await startHostile(t);
    const elsewhere = await HostileScrip.start();
    try {
      for (const status of [301, 302, 307, 308]) {
        hostile.behave(sends(status, '', { location: `${elsewhere.url}/add` }));
        await assert.rejects(client(hostile).add(ADDITION), UnexpectedAnswer);
      }
      assert.equal(elsewhere.received.length, 0);
    } finally {
      await elsewhere.stop();
    }
  });

  test('two client calls without an idempotency key make two writes, and two calls with the same key make one write', async (t) => {
    const hostile = await startHostile(t);
    hostile.behave(responds);
    await client(hostile).add(ADDITION);
    await client(hostile).add(ADDITION);
    assert.equal(hostile.applied.length, 2);
    hostile.behave(responds);
    await client(hostile).add(ADDITION, { idempotencyKey: 'payment pay_1' });
    await client(hostile).add(ADDITION, { idempotencyKey: 'payment pay_1' });
    assert.deepEqual(hostile.applied, ['payment pay_1']);
  });

  test('each attempt of a client call has its own timeout, and an attempt that times out closes its connection', async (t) => {
    const hostile = await startHostile(t);
    for (const behavior of [staysSilent, sendsHeadersOnly]) {
      hostile.behave(behavior, behavior, responds);
      const started = performance.now();
      assert.deepEqual(await client(hostile, { timeoutMs: 150 }).add(ADDITION), ADDED);
      assert(performance.now() - started < 10_000);
      assert.equal(keysSent(hostile).size, 1);
      assert.equal(await hostile.received[0]?.canceled, true);
      hostile.behave(behavior);
      const error = await client(hostile, { timeoutMs: 150, retries: 0 })
        .add(ADDITION)
        .catch((error) => error);
      assert(error instanceof TimedOut, String(error));
      assert.match(error.message, /150 ms/);
    }
  });

  test('a client call times out even if a custom fetch ignores the signal', async (t) => {
    const hostile = await startHostile(t);
    const impatient = client(hostile, { timeoutMs: 100, retries: 1, fetch: () => new Promise(() => {}) });
    await assert.rejects(impatient.add(ADDITION), TimedOut);
    const controller = new AbortController();
    const patient = client(hostile, { fetch: () => new Promise(() => {}) });
    setTimeout(() => controller.abort(new Error('the user has left')), 50);
    await assert.rejects(patient.add(ADDITION, { signal: controller.signal }), /the user has left/);
  });

  test('the client throws ConnectionFailed if a custom fetch throws, or rejects with any value', async (t) => {
    const hostile = await startHostile(t);
    const throwing = () => {
      throw new TypeError('offline');
    };
    for (const fetch of [throwing, () => Promise.reject('offline'), () => Promise.reject(undefined)])
      await assert.rejects(client(hostile, { retries: 1, fetch }).add(ADDITION), ConnectionFailed);
  });

  test('the client waits as long as Retry-After says, in seconds or as a date, and throws immediately if the wait would be too long', async (t) => {
    const hostile = await startHostile(t);
    hostile.behave(refuses(429, 'TooManyRequests', {}, { 'retry-after': '1' }), responds);
    let started = performance.now();
    await client(hostile).add(ADDITION);
    const waitedMs = performance.now() - started;
    assert(waitedMs >= 1_000 && waitedMs < 8_000, `${waitedMs} ms`);

    const date = new Date(Date.now() + 2_000).toUTCString();
    hostile.behave(refuses(503, 'Overloaded', {}, { 'retry-after': date }), responds);
    started = performance.now();
    await client(hostile).add(ADDITION);
    assert(performance.now() - started >= 900, 'the client waits until a Retry-After date');

    hostile.behave(refuses(429, 'TooManyRequests', {}, { 'retry-after': '3600' }), responds);
    const error = await client(hostile)
      .add(ADDITION)
      .catch((error) => error);
    assert(error instanceof TooManyRequests);
    assert.equal(error.retryAfterMs, 3_600_000);
    assert.equal(hostile.received.length, 1);
  });

  test('before its first three retries, the client waits at least half of 200, 400 and 800 ms', async (t) => {
    const hostile = await startHostile(t);
    hostile.behave(dropsConnection, dropsConnection, dropsConnection, responds);
    const started = performance.now();
    await client(hostile).add(ADDITION);
    const waitedMs = performance.now() - started;
    assert(waitedMs >= 700, `waited ${waitedMs} ms instead of at least half of 200, 400 and 800 ms`);
  });

  test('if the signal of a client call is aborted during an attempt or between attempts, the call rejects with the abort reason', async (t) => {
    const hostile = await startHostile(t);
    for (const behavior of [staysSilent, refuses(503, 'Overloaded', {}, { 'retry-after': '20' })]) {
      hostile.behave(behavior);
      const controller = new AbortController();
      const call = client(hostile, { timeoutMs: 20_000 }).add(ADDITION, { signal: controller.signal });
      await eventually(() => hostile.received.length === 1, 'the request was received');
      await sleep(100);
      const left = performance.now();
      controller.abort(new Error('the user has left'));
      await assert.rejects(call, /the user has left/);
      assert(performance.now() - left < 5_000, 'the call rejects immediately');
      assert.equal(hostile.received.length, 1);
    }
    hostile.behave(responds);
    await assert.rejects(client(hostile).add(ADDITION, { signal: AbortSignal.abort(new Error('before')) }), /before/);
    assert.equal(hostile.received.length, 0, 'nothing is sent if the signal is already aborted');
  });

  test('the client retries reads, and sends them without a body or an idempotency key', async (t) => {
    const hostile = await startHostile(t);
    hostile.behave(dropsConnection, refuses(503, 'StoreUnavailable'), responds);
    await client(hostile).getActiveBalance({ end_user_id: END_USER });
    assert.equal(hostile.received.length, 3);
    for (const { method, url, headers } of hostile.received) {
      assert.deepEqual([method, url], ['GET', `/get-active-balance?end_user_id=${END_USER}`]);
      assert.equal(headers['idempotency-key'], undefined);
      assert.equal(headers['content-type'], undefined);
      assert.equal(headers['content-length'] ?? '0', '0');
      assert.equal(headers['transfer-encoding'], undefined);
    }
  });
});
