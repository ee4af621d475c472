// How many requests of an account are worked on at once, as accounts come, bring much and leave.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BESIDE_QUIET_PLACES,
  QUIET_MAX,
  SHARED_MS,
  SHARED_PLACES,
  SHARED_PLACES_MIN,
  SharedPlaces,
} from './shared-places.ts';

const [LOUD, QUIET, OTHER] = [1, 2, 3];

/** Accounts that ask at the same moment, each with so much at once. */
function placesOf(...asked: [account: number, atOnce: number][]): SharedPlaces {
  const places = new SharedPlaces();
  for (const [account, atOnce] of asked) places.ask(account, atOnce, 0);
  return places;
}

test('an account that is alone has all', () => {
  assert.equal(placesOf([LOUD, 5_000]).of(LOUD), Number.POSITIVE_INFINITY);
});

test('beside a quiet account one that brings much has few places, and the quiet one as many as it likes to use', () => {
  const places = placesOf([LOUD, 5_000], [QUIET, 1]);
  assert.equal(places.of(LOUD), BESIDE_QUIET_PLACES);
  assert(places.of(QUIET) > QUIET_MAX);
});

test('an account is quiet up to its bound, and not one request past it', () => {
  assert.equal(placesOf([LOUD, 5_000], [QUIET, QUIET_MAX]).of(LOUD) < SHARED_PLACES / 2, true);
  assert.equal(placesOf([LOUD, 5_000], [QUIET, QUIET_MAX + 1]).of(LOUD), SHARED_PLACES / 2);
});

test('those that bring much have together as many places as the quiet ones use', () => {
  const places = placesOf([LOUD, 5_000], [OTHER, 5_000], [QUIET, 24]);
  places.ask(QUIET, 24, 100);
  assert.deepEqual([places.of(LOUD), places.of(OTHER)], [12, 12]);
});

test('what a quiet one used at once is forgotten little by little', () => {
  const places = placesOf([LOUD, 5_000], [QUIET, 24]);
  for (let ms = 100; ms <= 4_000; ms += 100) {
    places.ask(LOUD, 5_000, ms);
    places.ask(QUIET, 1, ms);
    if (ms === 200) assert(places.of(LOUD) > 2 * BESIDE_QUIET_PLACES);
  }
  assert.equal(places.of(LOUD), BESIDE_QUIET_PLACES);
});

test('accounts that all bring much share all places, and none has less than the least', () => {
  assert.equal(placesOf([LOUD, 5_000], [OTHER, 5_000]).of(LOUD), SHARED_PLACES / 2);
  const many = placesOf(...Array.from({ length: 100 }, (_, account): [number, number] => [account, 5_000]));
  assert.equal(many.of(7), SHARED_PLACES_MIN);
});

test('an account that has asked for nothing for five seconds is no longer there, and not a moment before', () => {
  const places = placesOf([LOUD, 5_000], [QUIET, 1]);
  places.ask(LOUD, 5_000, SHARED_MS - 1);
  assert.equal(places.of(LOUD), BESIDE_QUIET_PLACES);
  places.ask(LOUD, 5_000, SHARED_MS + 99);
  assert.equal(places.of(LOUD), Number.POSITIVE_INFINITY);
});

test('an account that stopped bringing much is quiet after five seconds, and remembered as one that uses all a quiet one may', () => {
  const places = placesOf([LOUD, 5_000], [QUIET, 5_000]);
  const goOn = (fromMs: number, toMs: number) => {
    for (let ms = fromMs; ms <= toMs; ms += 100) {
      places.ask(LOUD, 5_000, ms);
      places.ask(QUIET, 1, ms);
    }
    return places.of(LOUD);
  };
  assert.equal(goOn(100, SHARED_MS - 100), SHARED_PLACES / 2);
  assert.equal(goOn(SHARED_MS, SHARED_MS), QUIET_MAX);
  assert.equal(goOn(SHARED_MS + 100, 2 * SHARED_MS), BESIDE_QUIET_PLACES);
});
