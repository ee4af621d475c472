// Tests the token bucket of the rate limit: bursts, the average rate, and the maximum number of stored buckets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITED_KEYS_MAX, RateLimit } from './rate-limit.ts';

const KEY = 7;

function allowed(limit: RateLimit, tries: number, now: number, key = KEY): number {
  return Array.from({ length: tries }, () => limit.take(key, now)).filter(
    ({ retryAfterSeconds }) => retryAfterSeconds === null,
  ).length;
}

test('the rate limit allows a full burst at once and not one request more', () => {
  const limit = new RateLimit({ perSecond: 5, burst: 8 });
  assert.equal(allowed(limit, 8, 1_000), 8);
  assert.equal(allowed(limit, 3, 1_000), 0);
});

test('the rate limit allows the next request after 1/rate seconds, not before', () => {
  const limit = new RateLimit({ perSecond: 4, burst: 4 });
  assert.equal(allowed(limit, 9, 0), 4);
  assert.equal(allowed(limit, 9, 249), 0);
  assert.equal(allowed(limit, 9, 250), 1);
  assert.equal(allowed(limit, 9, 750), 2);
});

test('rejected requests do not lower the average rate that a key is allowed', () => {
  for (const perSecond of [1, 3, 7, 100, 333]) {
    const limit = new RateLimit({ perSecond, burst: perSecond });
    let count = 0;
    for (let now = 0; now < 60_000; now += 0.7) count += allowed(limit, 1, now);
    assert(Math.abs(count - 61 * perSecond) <= perSecond / 100 + 2, `${count} in a minute at ${perSecond}`);
  }
});

test('a key that was idle for a long time is allowed one burst, not more', () => {
  const limit = new RateLimit({ perSecond: 2, burst: 5 });
  assert.equal(allowed(limit, 9, 0), 5);
  assert.equal(allowed(limit, 9, 3_600_000), 5);
});

test('the rate limit reports how many requests remain and when the bucket will be full; if no requests remain, it reports when the next request is allowed', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 3 });
  const state = (now: number) => Object.values(limit.take(KEY, now));
  assert.deepEqual(state(0), [null, 2, 1]);
  assert.deepEqual(state(0), [null, 1, 2]);
  assert.deepEqual(state(0), [null, 0, 1]);
  assert.deepEqual(state(0), [1, 0, 1]);
  assert.deepEqual(state(999), [1, 0, 1]);
  assert.deepEqual(state(1_000), [null, 0, 1]);
});

test('a rejected request is allowed after the reported number of seconds', () => {
  const limit = new RateLimit({ perSecond: 3, burst: 10 });
  let now = 0.3;
  for (let count = 0; count < 500; count++) {
    const { retryAfterSeconds } = limit.take(KEY, now);
    if (retryAfterSeconds === null) continue;
    now += retryAfterSeconds * 1_000;
    assert.equal(limit.take(KEY, now).retryAfterSeconds, null);
  }
});

test('the rate limit of one key does not affect another key', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 1 });
  assert.equal(allowed(limit, 5, 0, 1), 1);
  assert.equal(allowed(limit, 5, 0, 2), 1);
});

test('the number of keys that the rate limit tracks is bounded: the key that was used least recently starts again', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 2 });
  for (let key = 0; key < LIMITED_KEYS_MAX; key++) limit.take(key, 0);
  limit.take(0, 0);
  limit.take(LIMITED_KEYS_MAX, 0);
  assert.equal(allowed(limit, 5, 0, 0), 0, 'this key was used again');
  assert.equal(allowed(limit, 5, 0, LIMITED_KEYS_MAX), 1, 'this is the newest key');
  assert.equal(allowed(limit, 5, 0, 1), 2, 'this key was used least recently');
});
