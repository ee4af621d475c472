// Tests the bounds of amounts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX, isAmount } from './amount.ts';

test('an amount is a whole number from 1 to 2^53−1', () => {
  assert.equal(AMOUNT_MAX, 2 ** 53 - 1);
  for (const amount of [1, 2, AMOUNT_MAX]) assert(isAmount(amount), `${amount}`);
  for (const none of [0, -1, 0.5, 1.5, AMOUNT_MAX + 1, Number.NaN, Number.POSITIVE_INFINITY])
    assert(!isAmount(none), `${none}`);
});
