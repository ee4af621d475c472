// Tests that timestamps are formatted as `toISOString` formats them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DAY_MS, INSTANT_MAX } from '../../ledger/instant.ts';
import { timestamp } from './replies.ts';

test('a timestamp in a response equals the output of toISOString', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: INSTANT_MAX }), (instant) => {
      assert.equal(timestamp(instant), new Date(instant).toISOString());
    }),
    { numRuns: 2_000 },
  );
});

test('timestamps are exact in the first and last millisecond of a day, of a leap day and of the supported range', () => {
  const days = ['1970-01-01', '2023-12-31', '2024-02-28', '2024-02-29', '2024-03-01', '2100-02-28', '9999-12-31'];
  for (const day of days) {
    const begin = Date.parse(`${day}T00:00:00.000Z`);
    assert.equal(timestamp(begin), `${day}T00:00:00.000Z`);
    assert.equal(timestamp(begin + DAY_MS - 1), `${day}T23:59:59.999Z`);
    assert.equal(timestamp(begin + 3_600_000 + 60_000 + 1_000 + 1), `${day}T01:01:01.001Z`);
  }
});

test('timestamps are correct even if they fall on more days than the cache can hold', () => {
  const step = 7 * DAY_MS + 12_345_678;
  for (let number = 0; number < 10_000; number++) {
    const instant = number * step;
    assert.equal(timestamp(instant), new Date(instant).toISOString());
  }
});
