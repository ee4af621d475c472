// The bucket of a key: how many are let in at once and in the long run, what it says of itself, and what it forgets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITED_KEYS_MAX, RateLimit } from './rate-limit.ts';

const KEY = 7;

/** How many of so many requests are let in at this moment. */
function letIn(limit: RateLimit, tries: number, now: number, key = KEY): number {
  return Array.from({ length: tries }, () => limit.take(key, now)).filter((one) => one.retryAfterSeconds === null)
    .length;
}

test('a burst is let in at once, and not one more', () => {
  const limit = new RateLimit({ perSecond: 5, burst: 8 });
  assert.equal(letIn(limit, 8, 1_000), 8);
  assert.equal(letIn(limit, 3, 1_000), 0);
});

test('a place is free again after its share of a second, not before', () => {
  const limit = new RateLimit({ perSecond: 4, burst: 4 });
  assert.equal(letIn(limit, 9, 0), 4);
  assert.equal(letIn(limit, 9, 249), 0);
  assert.equal(letIn(limit, 9, 250), 1);
  assert.equal(letIn(limit, 9, 750), 2);
});

test('in the long run it is the rate, whether in vain tries come between or not', () => {
  for (const perSecond of [1, 3, 7, 100, 333]) {
    const limit = new RateLimit({ perSecond, burst: perSecond });
    let count = 0;
    for (let now = 0; now < 60_000; now += 0.7) count += letIn(limit, 1, now);
    assert(Math.abs(count - 61 * perSecond) <= perSecond / 100 + 2, `${count} in a minute at ${perSecond}`);
  }
});

test('idle time fills the bucket and no more than that', () => {
  const limit = new RateLimit({ perSecond: 2, burst: 5 });
  assert.equal(letIn(limit, 9, 0), 5);
  assert.equal(letIn(limit, 9, 3_600_000), 5);
});

test('what it says: what is left, and the seconds until all is there, or until the next one is let in', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 3 });
  const said = (now: number) => Object.values(limit.take(KEY, now));
  assert.deepEqual(said(0), [null, 2, 1]);
  assert.deepEqual(said(0), [null, 1, 2]);
  assert.deepEqual(said(0), [null, 0, 1]);
  assert.deepEqual(said(0), [1, 0, 1]);
  assert.deepEqual(said(999), [1, 0, 1]);
  assert.deepEqual(said(1_000), [null, 0, 1]);
});

test('whoever waits for the seconds that it is told is let in', () => {
  const limit = new RateLimit({ perSecond: 3, burst: 10 });
  let now = 0.3;
  for (let count = 0; count < 500; count++) {
    const { retryAfterSeconds } = limit.take(KEY, now);
    if (retryAfterSeconds === null) continue;
    now += retryAfterSeconds * 1_000;
    assert.equal(limit.take(KEY, now).retryAfterSeconds, null);
  }
});

test('one key takes nothing from another', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 1 });
  assert.equal(letIn(limit, 5, 0, 1), 1);
  assert.equal(letIn(limit, 5, 0, 2), 1);
});

test('keys that are idle are forgotten, and those that are not are bounded', () => {
  const limit = new RateLimit({ perSecond: 1, burst: 1 });
  for (let key = 0; key < 5_000; key++) limit.take(key, key * 2_000);
  assert(limit.remembered <= 1_000, `${limit.remembered} of keys that each called once, long ago`);
  for (let key = 0; key < 100_000; key++) limit.take(key, 20_000_000);
  assert(limit.remembered <= LIMITED_KEYS_MAX + 1_000, `${limit.remembered} of keys that all call now`);
  assert.equal(letIn(limit, 1, 20_000_000, 99_999), 0, 'the latest are still known');
});
