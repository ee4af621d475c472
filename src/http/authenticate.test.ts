// What the authenticator tells the store of the use of keys: seldom, all at once, and behind the requests.

import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type ApiKey, apiKeySecret, hashOf, SECRET_BYTES } from '../accounts/api-key.ts';
import type { ApiKeys } from '../store/store.ts';
import { Authenticator } from './authenticate.ts';

const SECRETS = [1, 2, 3].map((byte) => apiKeySecret('write', new Uint8Array(SECRET_BYTES).fill(byte)));

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let nowMs = 5_000;
  t.mock.method(performance, 'now', () => nowMs);
  const noted: (readonly number[])[] = [];
  const store = { fails: false, noted };
  const apiKeys = {
    find: async (hash: string): Promise<ApiKey | null> => {
      const index = SECRETS.findIndex((secret) => hashOf(secret) === hash);
      return index < 2 ? { id: index + 1, account: 1, scope: 'write' } : null;
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
  store.fails = true;
  assert.equal((await use(0))?.id, 1);
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
