// The client on a bad day: connections drop after the effect, the service is overloaded or slow, proxies answer in its
// place. A write is sent again where that can help, each time with the same idempotency key, so that nothing doubles.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
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
import {
  answers,
  type Behaviour,
  breaksOff,
  dropsConnection,
  END_USER,
  HostileScrip,
  refuses,
  says,
  sendsHeadersOnly,
  staysSilent,
} from './hostile-scrip.ts';

const ADDITION = { end_user_id: END_USER, amount: 100 };
const HTML = '<html><h1>502 Bad Gateway</h1></html>';

let hostile: HostileScrip;
before(async () => {
  hostile = await HostileScrip.start();
});
after(() => hostile.stop());

function client(options: Partial<ScripOptions> = {}): Scrip {
  return new Scrip({ apiKey: 'scrip_write_canary', baseUrl: hostile.url, timeoutMs: 10_000, ...options });
}

function keysSent(): Set<unknown> {
  return new Set(hostile.received.map(({ headers }) => headers['idempotency-key']));
}

const PASSING: Readonly<Record<string, readonly Behaviour[]>> = {
  'a connection that drops after the effect': [dropsConnection],
  'an answer that breaks off': [breaksOff],
  'an overloaded service': [refuses(503, 'Overloaded')],
  'a store that fails for a moment': [refuses(503, 'StoreUnavailable')],
  'an outcome that is not known': [refuses(503, 'OutcomeUnknown')],
  'a limit on calls': [refuses(429, 'TooManyRequests', {}, { 'retry-after': '0' })],
  'an error of a newer service that says it is away': [refuses(503, 'Moving')],
  'a proxy that cannot reach the service': [says(502, HTML, { 'content-type': 'text/html' })],
  'a proxy that waited in vain for the service': [says(504, '')],
  'three troubles in a row': [dropsConnection, refuses(503, 'OutcomeUnknown'), breaksOff],
};

for (const [trouble, behaviours] of Object.entries(PASSING)) {
  test(`${trouble} is tried again, with the same key, and the credits are added once`, async () => {
    hostile.behave(...behaviours, answers);
    assert.deepEqual(await client().add(ADDITION), ADDITION);
    assert.equal(hostile.received.length, behaviours.length + 1);
    assert.equal(keysSent().size, 1);
    assert.equal(hostile.effects.length, 1);
    for (const { body } of hostile.received) assert.deepEqual(body, ADDITION, 'each time the same');
  });
}

const LASTING: readonly (readonly [trouble: string, Behaviour, Class: abstract new (...args: never[]) => Error])[] = [
  ['connections that drop', dropsConnection, ConnectionFailed],
  ['an overloaded service', refuses(503, 'Overloaded'), Overloaded],
  ['a store that fails', refuses(503, 'StoreUnavailable'), StoreUnavailable],
  ['an outcome that stays unknown', refuses(503, 'OutcomeUnknown'), OutcomeUnknown],
  ['a proxy without a service', says(503, HTML), UnexpectedAnswer],
];

for (const [trouble, behaviour, Class] of LASTING) {
  test(`${trouble}: after the last attempt the error is thrown, and has the key to go on with`, async () => {
    hostile.behave(behaviour);
    const error = await client({ retries: 1 })
      .add(ADDITION)
      .catch((error) => error);
    assert(error instanceof Class, String(error));
    assert.equal(hostile.received.length, 2, 'one attempt and one retry');
    const { idempotencyKey } = error as ConnectionFailed;
    assert.deepEqual(keysSent(), new Set([idempotencyKey]));
    hostile.behave(answers);
    await client().add(ADDITION, { idempotencyKey: idempotencyKey as string });
    assert.deepEqual(hostile.effects, [idempotencyKey], 'going on is the same write');
  });
}

const FINAL: readonly (readonly [trouble: string, Behaviour, Class: abstract new (...args: never[]) => Error])[] = [
  ['a fault of the service', refuses(500, 'Internal'), Internal],
  ['a page of a proxy instead of the answer', says(200, HTML, { 'content-type': 'text/html' }), UnexpectedAnswer],
  ['an empty answer', says(200, ''), UnexpectedAnswer],
  ['an answer that is not JSON', says(200, '{"end_user_id":'), UnexpectedAnswer],
  ['JSON that is no answer', says(200, 'null'), UnexpectedAnswer],
  ['JSON of somebody else', says(200, '{"ok":true}'), UnexpectedAnswer],
  ['an error page with JSON of somebody else', says(403, '{"message":"blocked"}'), UnexpectedAnswer],
  ['a success that is none of Scrip', says(204, ''), UnexpectedAnswer],
];

for (const [trouble, behaviour, Class] of FINAL) {
  test(`${trouble} is an error at once`, async () => {
    hostile.behave(behaviour, answers);
    await assert.rejects(client().add(ADDITION), Class);
    assert.equal(hostile.received.length, 1);
  });
}

test('a redirect is not followed, so that the API key goes nowhere else', async () => {
  const elsewhere = await HostileScrip.start();
  try {
    for (const status of [301, 302, 307, 308]) {
      hostile.behave(says(status, '', { location: `${elsewhere.url}/add` }));
      await assert.rejects(client().add(ADDITION), UnexpectedAnswer);
    }
    assert.equal(elsewhere.received.length, 0);
  } finally {
    await elsewhere.stop();
  }
});

test('two calls are two writes; two calls with one key are one', async () => {
  hostile.behave(answers);
  await client().add(ADDITION);
  await client().add(ADDITION);
  assert.equal(hostile.effects.length, 2);
  hostile.behave(answers);
  await client().add(ADDITION, { idempotencyKey: 'payment pay_1' });
  await client().add(ADDITION, { idempotencyKey: 'payment pay_1' });
  assert.deepEqual(hostile.effects, ['payment pay_1']);
});

test('a silent service times out; each attempt has its own time, and gives up its connection', async () => {
  for (const behaviour of [staysSilent, sendsHeadersOnly]) {
    hostile.behave(behaviour, behaviour, answers);
    const started = performance.now();
    assert.deepEqual(await client({ timeoutMs: 150 }).add(ADDITION), ADDITION);
    assert(performance.now() - started < 10_000);
    assert.equal(keysSent().size, 1);
    assert.equal(await hostile.received[0]?.abandoned, true);
    hostile.behave(behaviour);
    const error = await client({ timeoutMs: 150, retries: 0 })
      .add(ADDITION)
      .catch((error) => error);
    assert(error instanceof TimedOut, String(error));
    assert.match(error.message, /150 ms/);
  }
});

test('a fetch that heeds no signal is given up all the same', async () => {
  const deaf = client({ timeoutMs: 100, retries: 1, fetch: () => new Promise(() => {}) });
  await assert.rejects(deaf.add(ADDITION), TimedOut);
  const controller = new AbortController();
  const patient = client({ fetch: () => new Promise(() => {}) });
  setTimeout(() => controller.abort(new Error('the user has left')), 50);
  await assert.rejects(patient.add(ADDITION, { signal: controller.signal }), /the user has left/);
});

test('a fetch that throws at once, or rejects with what is no error, is a failed connection', async () => {
  const throwing = () => {
    throw new TypeError('offline');
  };
  for (const fetch of [throwing, () => Promise.reject('offline'), () => Promise.reject(undefined)])
    await assert.rejects(client({ retries: 1, fetch }).add(ADDITION), ConnectionFailed);
});

test('the pause that the service asks for is kept; one that is too long is told to the caller', async () => {
  hostile.behave(refuses(429, 'TooManyRequests', {}, { 'retry-after': '1' }), answers);
  let started = performance.now();
  await client().add(ADDITION);
  const waitedMs = performance.now() - started;
  assert(waitedMs >= 1_000 && waitedMs < 8_000, `${waitedMs} ms`);

  const date = new Date(Date.now() + 2_000).toUTCString();
  hostile.behave(refuses(503, 'Overloaded', {}, { 'retry-after': date }), answers);
  started = performance.now();
  await client().add(ADDITION);
  assert(performance.now() - started >= 900, 'a date counts as well');

  hostile.behave(refuses(429, 'TooManyRequests', {}, { 'retry-after': '3600' }), answers);
  const error = await client()
    .add(ADDITION)
    .catch((error) => error);
  assert(error instanceof TooManyRequests);
  assert.equal(error.retryAfterMs, 3_600_000);
  assert.equal(hostile.received.length, 1);
});

test('the pauses between attempts grow', async () => {
  hostile.behave(dropsConnection, dropsConnection, dropsConnection, answers);
  const started = performance.now();
  await client().add(ADDITION);
  const waitedMs = performance.now() - started;
  assert(waitedMs >= 700, `at least half of 200, 400 and 800 ms, and it was ${waitedMs}`);
});

test('a caller who stops waiting gets the reason given, during a call and between two', async () => {
  for (const behaviour of [staysSilent, refuses(503, 'Overloaded', {}, { 'retry-after': '20' })]) {
    hostile.behave(behaviour);
    const controller = new AbortController();
    const call = client({ timeoutMs: 20_000 }).add(ADDITION, { signal: controller.signal });
    await sleep(100);
    const left = performance.now();
    controller.abort(new Error('the user has left'));
    await assert.rejects(call, /the user has left/);
    assert(performance.now() - left < 5_000, 'at once');
    assert.equal(hostile.received.length, 1);
  }
  hostile.behave(answers);
  await assert.rejects(client().add(ADDITION, { signal: AbortSignal.abort(new Error('before')) }), /before/);
  assert.equal(hostile.received.length, 0, 'nothing is sent when the signal came first');
});

test('reads are tried again as well, and are sent without a body and without a key', async () => {
  hostile.behave(dropsConnection, refuses(503, 'StoreUnavailable'), answers);
  await client().getActiveBalance({ end_user_id: END_USER });
  assert.equal(hostile.received.length, 3);
  for (const { method, url, headers } of hostile.received) {
    assert.deepEqual([method, url], ['GET', `/get-active-balance?end_user_id=${END_USER}`]);
    assert.equal(headers['idempotency-key'], undefined);
    assert.equal(headers['content-type'], undefined);
    assert.equal(headers['content-length'] ?? '0', '0');
    assert.equal(headers['transfer-encoding'], undefined);
  }
});
