// Tests that requests share lookups of API keys, and that the uses of API keys are stored in the background.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type ApiKey, apiKeySecret, hashOf, SECRET_BYTES } from '../../accounts/api-key.ts';
import type { KeyStore } from '../../store/key-store.ts';
import { Authenticator, FRESH_MS, type LatestKey } from './authenticator.ts';

const SECRETS = [1, 2, 3].map((byte) => apiKeySecret('write', new Uint8Array(SECRET_BYTES).fill(byte)));
const NO_KEY: LatestKey = { authorization: '', hash: '', account: 0 };

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
      if (store.fails) throw new Error('the store is unavailable');
      const index = SECRETS.findIndex((secret) => hashOf(secret) === hash);
      return index < 2 && !store.revoked ? { id: index + 1, account: 1, scope: 'write' } : null;
    },
    recordUses: async (ids: readonly number[]) => {
      if (store.fails) throw new Error('the store is unavailable');
      noted.push(ids);
    },
  } as unknown as KeyStore;
  const authenticator = new Authenticator(apiKeys);
  authenticator.start();
  const use = async (index: number) => authenticator.authenticate(`Bearer ${SECRETS[index]}`, { ...NO_KEY });
  const pass = async (ms: number) => {
    for (let step = 0; step < ms; step += 500) {
      nowMs += 500;
      t.mock.timers.tick(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { authenticator, store, use, pass };
}

test('uses of several API keys are stored in one write within a second, and a further use of a key is stored only after a minute', async (t) => {
  const { authenticator, store, use, pass } = setUp(t);
  for (let times = 0; times < 5; times++) await Promise.all([use(0), use(1)]);
  assert.deepEqual(store.noted, [], 'uses are not stored during the request');
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

test('uses of invalid API keys are not stored', async (t) => {
  const { authenticator, store, use, pass } = setUp(t);
  assert.equal(await use(2), null);
  await pass(3_000);
  await authenticator.stop();
  assert.deepEqual(store.noted, []);
});

test('if a use of an API key cannot be stored, the request still succeeds, and the next use is stored', async (t) => {
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

test('when Scrip stops, it stores the remaining uses of API keys', async (t) => {
  const { authenticator, store, use } = setUp(t);
  await use(1);
  await authenticator.stop();
  assert.deepEqual(store.noted, [[2]]);
});

test('requests that arrive while their API key is being looked up share the lookup', async (t) => {
  const { store, use, pass } = setUp(t);
  const answers = await Promise.all([use(0), use(1), use(0), use(2), use(0), use(2)]);
  assert.deepEqual(
    answers.map((key) => key?.id ?? null),
    [1, 2, 1, null, 1, null],
  );
  assert.equal(store.lookUps, 3);
  assert.equal((await use(0))?.id, 1);
  assert.equal(store.lookUps, 3, 'the result is still fresh');
  await pass(FRESH_MS);
  await Promise.all(Array.from({ length: 100 }, () => use(0)));
  assert.equal(store.lookUps, 4, 'one lookup for all requests after the result has expired');
});

test('a request does not wait for a lookup of its API key if the lookup has already taken half a second', async (t) => {
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

test('if the lookup of an API key fails, the requests that share the lookup fail, and later requests succeed', async (t) => {
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

test('the API key that a connection uses is looked up again after half a second, and is refused if it was revoked', async (t) => {
  const { authenticator, store, pass } = setUp(t);
  const latest = { ...NO_KEY };
  const ask = async (index: number) => authenticator.authenticate(`Bearer ${SECRETS[index]}`, latest);
  await ask(0);
  assert.equal((await ask(0))?.id, 1);
  await pass(FRESH_MS);
  assert.equal((await ask(0))?.id, 1);
  assert.equal(store.lookUps, 2);
  assert.equal((await ask(1))?.id, 2, 'another key on the same connection is looked up separately');
  store.revoked = true;
  await pass(FRESH_MS);
  assert.equal(await ask(0), null);
  assert.equal(await ask(0), null);
});
