// How many requests may be in flight: as many as there are places, and fewer of each account where the store is slow.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  IN_FLIGHT_ALONE_MAX,
  IN_FLIGHT_ALONE_MIN,
  IN_FLIGHT_MAX,
  WAIT_MS_MAX,
  WorkInFlight,
} from './work-in-flight.ts';

const ONE = 1;
const OTHER = 2;
const THIRD = 3;

function workAt(perMs: number | null): WorkInFlight {
  return new WorkInFlight(IN_FLIGHT_MAX, () => perMs);
}

/** @returns how many the account is given until it is refused one, by both ways of asking */
function fill(work: WorkInFlight, account: number): number {
  for (let given = 0; ; given++) {
    const mayEnter = work.hasRoom(account);
    work.enter();
    const holder = work.claim(account);
    assert.equal(holder !== null, mayEnter, 'both ways of asking agree');
    if (holder === null) {
      work.leave({ account: null, requests: 0, streams: 0 });
      return given;
    }
  }
}

test('as long as nothing is known of the store, an account that is alone has half of all places', () => {
  assert.equal(fill(workAt(null), ONE), IN_FLIGHT_ALONE_MAX);
});

for (const { title, perMs, most } of [
  { title: 'with a store that does all of them in time, it has them all', perMs: 10, most: IN_FLIGHT_ALONE_MAX },
  { title: 'with a slower one as many as it does in time', perMs: 6, most: 6 * WAIT_MS_MAX },
  { title: 'with a much slower one the least', perMs: 2, most: IN_FLIGHT_ALONE_MIN },
  { title: 'and however slow it is', perMs: 0.001, most: IN_FLIGHT_ALONE_MIN },
])
  test(title, () => {
    const work = workAt(perMs);
    assert(work.isCalm);
    assert.equal(fill(work, ONE), most);
    assert.equal(work.isCalm, false);
  });

test('with a slow store too, whoever comes next finds room, and the more they are the less each has', () => {
  const work = workAt(1);
  assert.equal(fill(work, ONE), 2_048);
  assert.equal(fill(work, OTHER), 1_024);
  assert.equal(fill(work, THIRD), 512);
});

test('also while one has more than there would be time for, since the store has become slow only now', () => {
  let perMs: number | null = null;
  const work = new WorkInFlight(IN_FLIGHT_MAX, () => perMs);
  assert.equal(fill(work, ONE), IN_FLIGHT_ALONE_MAX);
  perMs = 1;
  assert.equal(fill(work, ONE), 0);
  assert.equal(fill(work, OTHER), 512);
});

test('with a list that waits nobody is busy, and whoever waits for a place is told, but it takes up room', () => {
  const work = workAt(null);
  work.enter();
  const holder = work.claim(ONE);
  assert(holder);
  assert.equal(work.busyWith(ONE), 1);
  let told = 0;
  work.onRoom = () => {
    told += 1;
  };
  work.stepAside(holder);
  assert.deepEqual([work.busyWith(ONE), work.requests, told], [0, 1, 1]);
  work.stepBack(holder);
  assert.deepEqual([work.busyWith(ONE), work.requests, told], [1, 1, 1]);
});
