// Postings: what one says of the cycle that it touches, and how those of a transaction read as one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import { isNote, openingOf, posting, transactionOf } from './posting.ts';
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

test('a posting names the period that it touches, and expires with it', () => {
  assert.deepEqual(posting(CYCLE, { ...DRAW, amount: -40 }), {
    transactionId: LATER_ID,
    cycleId: ID,
    period: 2,
    kind: 'subtract',
    amount: -40,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
    note: null,
  });
});

test('a period opens with all of its credits, at its start, whatever is left of them now', () => {
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
  });
});

test('a transaction of one posting is that posting', () => {
  assert.deepEqual(transactionOf([posting(CYCLE, { ...DRAW, amount: -40 })]), {
    id: LATER_ID,
    kind: 'subtract',
    amount: -40,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
  });
});

const ENDS: readonly (readonly [name: string, ends: readonly [number, number, number]])[] = [
  ['a transaction expires with the cycle that ends last, when that is the first', [9, 2, 1]],
  ['a transaction expires with the cycle that ends last, when that is in the middle', [1, 9, 2]],
  ['a transaction expires with the cycle that ends last, when that is the last', [2, 1, 9]],
];

for (const [name, [first, second, third]] of ENDS) {
  test(`${name}, and its amounts add up`, () => {
    const draw = (days: number, amount: number) =>
      posting({ ...CYCLE, end: NOW + days * DAY_MS }, { ...DRAW, amount: -amount });
    const transaction = transactionOf([draw(first, 1), draw(second, 20), draw(third, 300)]);
    assert.equal(transaction.expiresAt, NOW + 9 * DAY_MS);
    assert.equal(transaction.amount, -321);
    assert.equal(transaction.id, LATER_ID);
  });
}

for (const [what, note, isOne] of [
  ['nothing', '', false],
  ['one character', '.', true],
  ['500 characters', 'x'.repeat(500), true],
  ['501 characters', 'x'.repeat(501), false],
  ['500 characters outside the basic plane', '🦉'.repeat(500), true],
  ['501 of them', '🦉'.repeat(501), false],
  ['several lines', 'a\n\tb', true],
  ['a NUL', 'a\0b', false],
  ['half a surrogate pair', 'a\ud83e', false],
] as const) {
  test(`${what} ${isOne ? 'is' : 'is not'} a note`, () => assert.equal(isNote(note), isOne));
}
