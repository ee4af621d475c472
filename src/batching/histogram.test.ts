// What is counted by bounds: a value on a bound belongs to it, and what lies beyond all of them is counted as well.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram } from './histogram.ts';

test('a value is counted below the first bound that it does not pass, and beyond the last one if it passes all', () => {
  const tally = new Histogram([1, 10, 100]);
  for (const value of [0, 1, 1.5, 10, 10.1, 99, 100, 101, 5_000]) tally.add(value);
  assert.deepEqual([...tally.counts], [2, 2, 3, 2]);
});

test('the values add up', () => {
  const tally = new Histogram([1]);
  for (const value of [0.25, 2, 40]) tally.add(value);
  assert.equal(tally.sum, 42.25);
  assert.deepEqual(tally.bounds, [1]);
});
