// Amounts at their bounds, and sums that pass what a number holds exactly on their way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX, isAmount, sumToNothing } from './amount.ts';

test('an amount is a whole number from 1 to 2^53−1', () => {
  for (const amount of [1, 2, AMOUNT_MAX]) assert(isAmount(amount), `${amount}`);
  for (const none of [0, -1, 0.5, AMOUNT_MAX + 1, Number.NaN, Number.POSITIVE_INFINITY])
    assert(!isAmount(none), `${none}`);
});

test('numbers that cancel out sum to nothing, and others do not', () => {
  for (const numbers of [[], [0], [5, -5], [1, 2, -3], [-3, 2, 1]]) assert(sumToNothing(numbers), `${numbers}`);
  for (const numbers of [[1], [-1], [5, -4], [5, -6], [1, 2, -4]]) assert(!sumToNothing(numbers), `${numbers}`);
});

test('a sum is exact to the credit, however large it is in between', () => {
  const cancelling = [AMOUNT_MAX, AMOUNT_MAX, AMOUNT_MAX, -AMOUNT_MAX, -AMOUNT_MAX, -AMOUNT_MAX];
  assert(sumToNothing(cancelling));
  assert(sumToNothing(cancelling.toReversed()));
  for (const one of [1, -1])
    assert(!sumToNothing([AMOUNT_MAX, AMOUNT_MAX, one, -AMOUNT_MAX, -AMOUNT_MAX]), `${one} is left`);
  const rounded = [-2, -AMOUNT_MAX, 1, AMOUNT_MAX];
  assert.equal(
    rounded.reduce((sum, one) => sum + one, 0),
    0,
    'as numbers',
  );
  assert(!sumToNothing(rounded), 'a credit is missing');
});
