// Tests the rate limit of API keys, with and without RATE_LIMIT.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidSetting, readConfig } from '../../../src/config.ts';
import { assertProblem, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

const BURST = 4;

let scrip: Scrip;
let key: string;
before(async () => {
  scrip = await startScrip({ rateLimit: { perSecond: 1, burst: BURST } });
});
beforeEach(async () => {
  key = await scrip.createKey('Acme', 'write');
});
after(() => scrip.stop());

const add = (endUser = someone(), headers = {}) =>
  scrip.post('/add', { end_user_id: endUser, amount: 5 }, { key, headers });

function standing({ headers }: Reply): { remaining: number; reset: number } {
  assert.equal(headers['ratelimit-policy'], `"key";q=${BURST};w=${BURST}`);
  const [, remaining, reset] =
    /^"key";r=(\d+);t=(\d+)$/.exec(String(headers.ratelimit)) ?? assert.fail('no RateLimit header');
  return { remaining: Number(remaining), reset: Number(reset) };
}

async function spend(): Promise<Reply[]> {
  const replies = [];
  for (let count = 0; count < BURST; count++) replies.push(await add());
  return replies;
}

test('each response shows how many requests the API key has left, and a request beyond the limit gets TooManyRequests and changes nothing', async () => {
  const replies = await spend();
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  assert.deepEqual(
    replies.map((reply) => standing(reply).remaining),
    [3, 2, 1, 0],
  );
  const user = someone();
  const refused = await add(user);
  assertProblem(refused, 'TooManyRequests', 429);
  assert.deepEqual(standing(refused), { remaining: 0, reset: Number(refused.headers['retry-after']) });
  assert.equal(refused.headers['retry-after'], '1');
  assert.equal((await scrip.balance(user)).active_balance, 0);
});

test('a request beyond the rate limit is accepted if it is repeated after the time in Retry-After', async () => {
  await spend();
  const refused = await add();
  assert.equal(refused.status, 429);
  await sleep(Number(refused.headers['retry-after']) * 1_000);
  assert.equal((await add()).status, 200);
});

test('refused, invalid and forbidden requests count toward the rate limit, and their responses show how many requests are left', async () => {
  const subtraction = { end_user_id: someone(), amount: 1 };
  assert.deepEqual(standing(await scrip.post('/subtract', subtraction, { key })).remaining, 3);
  assert.deepEqual(standing(await scrip.post('/add', { amount: 'x' }, { key })).remaining, 2);
  assert.deepEqual(standing(await scrip.call('POST', '/add', { body: '{', key })).remaining, 1);
  const readKey = await scrip.createKey('Acme', 'read');
  const forbidden = await scrip.post('/add', subtraction, { key: readKey });
  assert.equal(forbidden.status, 403);
  assert.equal(standing(forbidden).remaining, 3);
});

test('reads and writes, with and without /v1, share the rate limit of an API key', async () => {
  await spend();
  for (const path of ['/get-active-balance', '/v1/get-active-balance', '/get-all-user-transactions'])
    assertProblem(await scrip.get(path, { end_user_id: someone() }, { key }), 'TooManyRequests', 429);
  assertProblem(await scrip.post('/v1/add', { end_user_id: someone(), amount: 1 }, { key }), 'TooManyRequests', 429);
});

test('each API key of an account has its own rate limit', async () => {
  await spend();
  key = await scrip.createKey('Acme', 'write');
  assert.equal((await add()).status, 200);
});

test('a request without a valid API key does not count toward any rate limit, and its response has no RateLimit header', async () => {
  for (let count = 0; count < 20; count++) {
    const reply = await scrip.post('/add', {}, { key: `${key.slice(0, -1)}x` });
    assert.equal(reply.status, 401);
    assert.equal(reply.headers.ratelimit, undefined);
  }
  assert.equal(standing(await add()).remaining, 3);
});

test('a request with an unknown path or an unsupported method does not count toward the rate limit, and its response has no RateLimit header', async () => {
  for (const [method, path, status] of [
    ['GET', '/nothing', 404],
    ['PUT', '/add', 405],
  ] as const) {
    const reply = await scrip.call(method, path, { key });
    assert.deepEqual([reply.status, reply.headers.ratelimit], [status, undefined]);
  }
  assert.equal(standing(await add()).remaining, 3);
});

test('the routes for operators are not rate-limited', async () => {
  for (let count = 0; count < 20; count++) assert.equal((await scrip.call('GET', '/healthz', { key })).status, 200);
});

test('a request beyond the rate limit stores no idempotency record', async () => {
  const user = someone();
  const headers = { 'idempotency-key': 'order-1' };
  await spend();
  assert.equal((await add(user, headers)).status, 429);
  await sleep(1_000);
  const first = await add(user, headers);
  assert.deepEqual([first.status, first.headers['idempotent-replayed']], [200, undefined]);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('without RATE_LIMIT, there is no rate limit, and responses have no RateLimit headers', async (t) => {
  const unlimited = await startScrip();
  t.after(() => unlimited.stop());
  for (let count = 0; count < 100; count++) {
    const reply = await unlimited.get('/get-active-balance', { end_user_id: someone() });
    assert.equal(reply.status, 200);
    assert.deepEqual([reply.headers.ratelimit, reply.headers['ratelimit-policy']], [undefined, undefined]);
  }
});

test('RATE_LIMIT_BURST defaults to RATE_LIMIT, and invalid values of either setting are rejected', () => {
  assert.equal(readConfig({}).rateLimit, null);
  assert.deepEqual(readConfig({ RATE_LIMIT: '50' }).rateLimit, { perSecond: 50, burst: 50 });
  assert.deepEqual(readConfig({ RATE_LIMIT: '50', RATE_LIMIT_BURST: '200' }).rateLimit, { perSecond: 50, burst: 200 });
  for (const wrong of [
    { RATE_LIMIT: '0' },
    { RATE_LIMIT: '1.5' },
    { RATE_LIMIT: 'many' },
    { RATE_LIMIT: '1000001' },
    { RATE_LIMIT: '50', RATE_LIMIT_BURST: '49' },
    { RATE_LIMIT_BURST: '49' },
  ])
    assert.throws(() => readConfig(wrong), InvalidSetting, JSON.stringify(wrong));
});
