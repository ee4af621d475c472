// The balance is the sum of the cycles that have not ended at an instant, and must be exact as a JavaScript number.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from './amount.ts';
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

test('an end user without cycles has a balance of zero', () => {
  assert.equal(activeBalance([], START), 0);
});

const INSTANTS: readonly (readonly [when: string, now: number, balance: number])[] = [
  ['count at the instant at which their cycle starts', START, 100],
  ['count a millisecond before the end of their cycle', END - 1, 100],
  ['do not count at the end of their cycle', END, 0],
  ['do not count a millisecond after the end of their cycle', END + 1, 0],
];

for (const [when, now, balance] of INSTANTS) {
  test(`credits ${when}`, () => assert.equal(activeBalance([cycle()], now), balance));
}

test('the balance counts what is left in a cycle, not what it started with', () => {
  assert.equal(activeBalance([cycle({ remaining: 1 })], START), 1);
  assert.equal(activeBalance([cycle({ remaining: 0 })], START), 0);
});

test('one-time, recurring, canceled and superseded cycles all count towards the balance, and ended cycles do not', () => {
  const cycles = [
    cycle({ remaining: 1 }),
    cycle({ remaining: 20, end: END - 1 }),
    cycle({ remaining: 300, type: 'recurring' }),
    cycle({ remaining: 4_000, type: 'recurring', status: 'canceled' }),
    cycle({ remaining: 50_000, type: 'recurring', status: 'superseded' }),
  ];
  assert.equal(activeBalance(cycles, END - 1), 54_301);
});

test('a balance may be 2^53−1', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX - 1 })];
  assert.equal(activeBalance(cycles, START), AMOUNT_MAX);
});

test('a balance above 2^53−1 fails an assertion instead of being rounded', () => {
  const cycles = [cycle({ remaining: 1 }), cycle({ remaining: AMOUNT_MAX })];
  assert.throws(() => activeBalance(cycles, START), { name: 'AssertionError' });
  assert.equal(activeBalance(cycles, END), 0, 'ended cycles do not count');
});
