// The balance: at an instant, of what has not ended, and within what a JavaScript number holds exactly.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX, isAmount } from './amount.ts';
import { activeBalance } from './balance.ts';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import { transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30);
const END = START + DAY_MS;

function cycle(change: Partial<Cycle> = {}): Cycle {
  return {
    id: transactionId({ at: START, sequence: 1, tail: 'aaaaaaaaaaaa' }),
    period: 0,
    type: 'one-time',
    status: 'active',
    amount: 100,
    remaining: 100,
    start: START,
    end: END,
    validityDays: 1,
    ...change,
  };
}

test('who has no cycles has no credits', () => {
  assert.equal(activeBalance([], START), 0);
});

const INSTANTS: readonly (readonly [when: string, now: number, balance: number])[] = [
  ['count the instant they start', START, 100],
  ['count a millisecond before their end', END - 1, 100],
  ['do not count at their end', END, 0],
  ['do not count a millisecond after their end', END + 1, 0],
];

for (const [when, now, balance] of INSTANTS) {
  test(`credits ${when}`, () => assert.equal(activeBalance([cycle()], now), balance));
}

test('what is left counts, not what there was', () => {
  assert.equal(activeBalance([cycle({ remaining: 1 })], START), 1);
  assert.equal(activeBalance([cycle({ remaining: 0 })], START), 0);
});

test('one-time, recurring and canceled cycles count alike, and ended ones between them do not', () => {
  const cycles = [
    cycle({ remaining: 1 }),
    cycle({ remaining: 20, end: END - 1 }),
    cycle({ remaining: 300, type: 'recurring' }),
    cycle({ remaining: 4_000, type: 'recurring', status: 'canceled' }),
  ];
  assert.equal(activeBalance(cycles, END - 1), 4_301);
});

test('a balance may be 2^53−1', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX - 1 })];
  assert.equal(activeBalance(cycles, START), AMOUNT_MAX);
});

test('a balance past 2^53−1 is never computed', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX })];
  assert.throws(() => activeBalance(cycles, START), { name: 'AssertionError' });
  assert.equal(activeBalance(cycles, END), 0, 'what has ended adds up to nothing');
});

const AMOUNTS: readonly (readonly [value: number, isOne: boolean])[] = [
  [-1, false],
  [0, false],
  [0.5, false],
  [1, true],
  [1.5, false],
  [2 ** 53 - 1, true],
  [2 ** 53, false],
  [Number.NaN, false],
  [Number.POSITIVE_INFINITY, false],
];

test('an amount is a whole number from 1 to 2^53−1', () => {
  assert.equal(AMOUNT_MAX, 2 ** 53 - 1);
  for (const [value, isOne] of AMOUNTS) assert.equal(isAmount(value), isOne, String(value));
});
