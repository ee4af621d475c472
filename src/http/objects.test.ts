// Timestamps, which are put together by hand: a list of transactions is mostly these.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DAY_MS, INSTANT_MAX } from '../ledger/instant.ts';
import { timestamp } from './objects.ts';

test('a timestamp is the one that the library writes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: INSTANT_MAX }), (instant) => {
      assert.equal(timestamp(instant), new Date(instant).toISOString());
    }),
    { numRuns: 2_000 },
  );
});

test('the first and the last millisecond of a day, a leap day and all of time are written as what they are', () => {
  const days = ['1970-01-01', '2023-12-31', '2024-02-28', '2024-02-29', '2024-03-01', '2100-02-28', '9999-12-31'];
  for (const day of days) {
    const begin = Date.parse(`${day}T00:00:00.000Z`);
    assert.equal(timestamp(begin), `${day}T00:00:00.000Z`);
    assert.equal(timestamp(begin + DAY_MS - 1), `${day}T23:59:59.999Z`);
    assert.equal(timestamp(begin + 3_600_000 + 60_000 + 1_000 + 1), `${day}T01:01:01.001Z`);
  }
});

test('more days than are remembered are written as well as the first', () => {
  const step = 7 * DAY_MS + 12_345_678;
  for (let number = 0; number < 10_000; number++) {
    const instant = number * step;
    assert.equal(timestamp(instant), new Date(instant).toISOString());
  }
});
