// What the authenticator tells the store of the use of keys: seldom, all at once, and behind the requests.

import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type ApiKey, apiKeySecret, hashOf, SECRET_BYTES } from '../accounts/api-key.ts';
import type { ApiKeys } from '../store/store.ts';
import { Authenticator, FRESH_MS, type LatestCaller } from './authenticate.ts';

const SECRETS = [1, 2, 3].map((byte) => apiKeySecret('write', new Uint8Array(SECRET_BYTES).fill(byte)));

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const noted: (readonly number[])[] = [];
  const store = { fails: false, revoked: false, noted, lookUps: 0, waitFor: Promise.resolve() };
  const apiKeys = {
    find: async (hash: string): Promise<ApiKey | null> => {
      store.lookUps += 1;
      await store.waitFor;
      if (store.fails) throw new Error('the store is away');
      const index = SECRETS.findIndex((secret) => hashOf(secret) === hash);
      return index < 2 && !store.revoked ? { id: index + 1, account: 1, scope: 'write' } : null;
    },
    noteUses: async (ids: readonly number[]) => {
      if (store.fails) throw new Error('the store is away');
      noted.push(ids);
    },
  } as unknown as ApiKeys;
  const authenticator = new Authenticator(apiKeys);
  authenticator.start();
  const use = async (index: number) =>
    authenticator.authenticate(requestWith(SECRETS[index] as string), { authorization: '', knownKey: null });
  const pass = async (ms: number) => {
    for (let step = 0; step < ms; step += 500) {
      nowMs += 500;
      t.mock.timers.tick(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { authenticator, store, use, pass };
}

function requestWith(secret: string): IncomingMessage {
  const authorization = `Bearer ${secret}`;
  return { headers: { authorization }, rawHeaders: ['Authorization', authorization] } as IncomingMessage;
}

test('keys that are used are handed over together within a second, and again only after a minute', async (t) => {
  const { authenticator, store, use, pass } = setUp(t);
  for (let times = 0; times < 5; times++) await Promise.all([use(0), use(1)]);
  assert.deepEqual(store.noted, [], 'not within the request');
  await pass(1_000);
  assert.deepEqual(store.noted, [[1, 2]]);
  for (let second = 0; second < 58; second++) {
    await use(0);
    await pass(1_000);
  }
  assert.deepEqual(store.noted, [[1, 2]]);
  await pass(2_000);
  await use(0);
  await pass(1_000);
  assert.deepEqual(store.noted, [[1, 2], [1]]);
  await authenticator.stop();
});

test('a key that opens nothing is not handed over, and nothing is when none is used', async (t) => {
  const { authenticator, store, use, pass } = setUp(t);
  assert.equal(await use(2), null);
  await pass(3_000);
  await authenticator.stop();
  assert.deepEqual(store.noted, []);
});

test('a store that fails fails no request, and is told at the next use', async (t) => {
  const { authenticator, store, use, pass } = setUp(t);
  assert.equal((await use(0))?.id, 1);
  store.fails = true;
  await pass(1_000);
  store.fails = false;
  await pass(2_000);
  assert.deepEqual(store.noted, []);
  assert.equal((await use(0))?.id, 1);
  await pass(1_000);
  assert.deepEqual(store.noted, [[1]]);
  await authenticator.stop();
});

test('what is left is handed over at the end', async (t) => {
  const { authenticator, store, use } = setUp(t);
  await use(1);
  await authenticator.stop();
  assert.deepEqual(store.noted, [[2]]);
});

test('requests that come while a key is looked up share the look-up, each key its own', async (t) => {
  const { store, use, pass } = setUp(t);
  const answers = await Promise.all([use(0), use(1), use(0), use(2), use(0), use(2)]);
  assert.deepEqual(
    answers.map((key) => key?.id ?? null),
    [1, 2, 1, null, 1, null],
  );
  assert.equal(store.lookUps, 3);
  assert.equal((await use(0))?.id, 1);
  assert.equal(store.lookUps, 3, 'it is fresh');
  await pass(FRESH_MS);
  await Promise.all(Array.from({ length: 100 }, () => use(0)));
  assert.equal(store.lookUps, 4, 'one for all that come when it is not');
});

test('a look-up that takes longer than its answer would be fresh is not waited for by those who come then', async (t) => {
  const { store, use, pass } = setUp(t);
  const { promise, resolve } = Promise.withResolvers<void>();
  store.waitFor = promise;
  const early = [use(0), use(0)];
  store.waitFor = Promise.resolve();
  await pass(FRESH_MS);
  assert.equal((await use(0))?.id, 1);
  assert.equal(store.lookUps, 2);
  resolve();
  assert.deepEqual(
    (await Promise.all(early)).map((key) => key?.id),
    [1, 1],
  );
});

test('a look-up that fails fails those who share it, and nobody after them', async (t) => {
  const { store, use } = setUp(t);
  store.fails = true;
  const results = await Promise.allSettled([use(0), use(0)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  store.fails = false;
  assert.equal((await use(0))?.id, 1);
  assert.equal(store.lookUps, 2);
});

test('a connection that has shown its key is asked about it again after half a second, and refused once it is revoked', async (t) => {
  const { authenticator, store, pass } = setUp(t);
  const latest: LatestCaller = { authorization: '', knownKey: null };
  const ask = async (index: number) => authenticator.authenticate(requestWith(SECRETS[index] as string), latest);
  await ask(0);
  assert.equal((await ask(0))?.id, 1);
  await pass(FRESH_MS);
  assert.equal((await ask(0))?.id, 1);
  assert.equal(store.lookUps, 2);
  assert.equal((await ask(1))?.id, 2, 'another key on it is that other key');
  store.revoked = true;
  await pass(FRESH_MS);
  assert.equal(await ask(0), null);
  assert.equal(await ask(0), null);
});
