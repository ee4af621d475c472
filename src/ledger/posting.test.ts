// The fields of a posting, and how the postings of a transaction add up to the transaction.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import { isNote, openingOf, postingTo, transactionOf } from './posting.ts';
import { transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30);
const NOW = START + 3 * DAY_MS;
const ID = transactionId({ at: START, sequence: 1, tail: 'aaaaaaaaaaaa' });
const LATER_ID = transactionId({ at: NOW, sequence: 1, tail: 'bbbbbbbbbbbb' });

/** The third period of a daily cycle. */
const CYCLE: Cycle = {
  id: ID,
  period: 2,
  type: 'recurring',
  status: 'active',
  amount: 100,
  remaining: 60,
  start: START + 2 * DAY_MS,
  end: START + 3 * DAY_MS,
  validityDays: 1,
};

const DRAW = { transactionId: LATER_ID, kind: 'subtract', createdAt: NOW, actor: 'key:7', note: null } as const;

test('a posting names the cycle and the period that it touches, and expires with that period', () => {
  assert.deepEqual(postingTo(CYCLE, -40, DRAW), {
    transactionId: LATER_ID,
    cycleId: ID,
    period: 2,
    kind: 'subtract',
    amount: -40,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
    note: null,
    terms: null,
  });
});

test('the posting that opens a period has its full credits, its start and its terms, however much was spent since', () => {
  assert.deepEqual(openingOf(CYCLE, { transactionId: LATER_ID, kind: 'renew', actor: 'renewal', note: null }), {
    transactionId: LATER_ID,
    cycleId: ID,
    period: 2,
    kind: 'renew',
    amount: 100,
    createdAt: START + 2 * DAY_MS,
    expiresAt: START + 3 * DAY_MS,
    actor: 'renewal',
    note: null,
    terms: { type: 'recurring', validityDays: 1 },
  });
});

test('a transaction of one posting has the amount, the times and the actor of its posting', () => {
  assert.deepEqual(transactionOf([postingTo(CYCLE, -40, DRAW)]), {
    id: LATER_ID,
    kind: 'subtract',
    amount: -40,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
  });
});

const ENDS: readonly (readonly [name: string, ends: readonly [number, number, number]])[] = [
  ['a transaction expires with its first cycle if that cycle ends last', [9, 2, 1]],
  ['a transaction expires with its second cycle if that cycle ends last', [1, 9, 2]],
  ['a transaction expires with its third cycle if that cycle ends last', [2, 1, 9]],
];

for (const [name, [first, second, third]] of ENDS) {
  test(`${name}, and its amount is the sum of its postings`, () => {
    const draw = (days: number, amount: number) => postingTo({ ...CYCLE, end: NOW + days * DAY_MS }, -amount, DRAW);
    const transaction = transactionOf([draw(first, 1), draw(second, 20), draw(third, 300)]);
    assert.equal(transaction.expiresAt, NOW + 9 * DAY_MS);
    assert.equal(transaction.amount, -321);
    assert.equal(transaction.id, LATER_ID);
  });
}

for (const [what, note, isOne] of [
  ['an empty text', '', false],
  ['one character', '.', true],
  ['500 characters', 'x'.repeat(500), true],
  ['501 characters', 'x'.repeat(501), false],
  ['500 characters outside the basic plane', '🦉'.repeat(500), true],
  ['501 characters outside the basic plane', '🦉'.repeat(501), false],
  ['several lines', 'a\n\tb', true],
  ['a NUL', 'a\0b', false],
  ['half a surrogate pair', 'a\ud83e', false],
] as const) {
  test(`${what} ${isOne ? 'is' : 'is not'} a valid note`, () => assert.equal(isNote(note), isOne));
}
