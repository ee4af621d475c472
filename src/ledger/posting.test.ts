// Tests the fields of postings, and how a transaction is computed from its postings.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cycle } from './cycle.ts';
import { DAY_MS } from './instant.ts';
import type { Plan } from './plan.ts';
import {
  isByTime,
  isListed,
  isNote,
  movedBy,
  openingOf,
  type PostingKind,
  postingOn,
  postingTo,
  rolledOverBy,
  type Transaction,
  transactionOf,
} from './posting.ts';
import { transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30);
const NOW = START + 3 * DAY_MS;
const ID = transactionId({ at: START, sequence: 2, tail: 'aaaaaaaaaaaa' });
const LATER_ID = transactionId({ at: NOW, sequence: 2, tail: 'bbbbbbbbbbbb' });

const PLAN: Plan = { amount: 100, validityDays: 1, validityMonths: null, rolloverMax: 0 };

const CYCLE: Cycle = {
  id: ID,
  period: 2,
  type: 'recurring',
  status: 'active',
  amount: 100,
  remaining: 60,
  held: 5,
  start: START + 2 * DAY_MS,
  end: START + 3 * DAY_MS,
  plan: PLAN,
  next: null,
};

const DRAW = { transactionId: LATER_ID, kind: 'subtract', createdAt: NOW, actor: 'key:7', note: null } as const;

test('a posting names the cycle and the period that it touches, and expires with that period', () => {
  assert.deepEqual(postingTo(CYCLE, -40, DRAW), {
    transactionId: LATER_ID,
    cycleId: ID,
    period: 2,
    kind: 'subtract',
    amount: -40,
    held: 0,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
    note: null,
    terms: null,
    reference: null,
    holdExpiresAt: null,
  });
});

test('the posting that opens a period has the full credits, the start and the terms of the period, even if credits have been spent in the meantime', () => {
  assert.deepEqual(openingOf(CYCLE, { transactionId: LATER_ID, kind: 'renew', actor: 'renewal', note: null }), {
    transactionId: LATER_ID,
    cycleId: ID,
    period: 2,
    kind: 'renew',
    amount: 100,
    held: 0,
    createdAt: START + 2 * DAY_MS,
    expiresAt: START + 3 * DAY_MS,
    actor: 'renewal',
    note: null,
    terms: { type: 'recurring', plan: PLAN },
    reference: null,
    holdExpiresAt: null,
  });
});

test('a transaction with one posting has the amount, the times, the actor and the note of that posting', () => {
  assert.deepEqual(transactionOf([postingTo(CYCLE, -40, { ...DRAW, note: 'ticket 4711' })]), {
    id: LATER_ID,
    kind: 'subtract',
    amount: -40,
    createdAt: NOW,
    expiresAt: START + 3 * DAY_MS,
    actor: 'key:7',
    note: 'ticket 4711',
  });
});

const ENDS: readonly (readonly [name: string, ends: readonly [number, number, number]])[] = [
  ['a transaction expires with its first cycle if that cycle ends last', [9, 2, 1]],
  ['a transaction expires with its second cycle if that cycle ends last', [1, 9, 2]],
  ['a transaction expires with its third cycle if that cycle ends last', [2, 1, 9]],
];

for (const [name, [first, second, third]] of ENDS) {
  test(`${name}, and the amount of the transaction is the sum of its postings`, () => {
    const draw = (days: number, amount: number) => postingTo({ ...CYCLE, end: NOW + days * DAY_MS }, -amount, DRAW);
    const transaction = transactionOf([draw(first, 1), draw(second, 20), draw(third, 300)]);
    assert.equal(transaction.expiresAt, NOW + 9 * DAY_MS);
    assert.equal(transaction.amount, -321);
    assert.equal(transaction.id, LATER_ID);
  });
}

test('a posting changes the credits and the held credits of a period, and names the hold that it closes', () => {
  const entry = { ...DRAW, kind: 'capture', reference: ID } as const;
  const posting = postingOn({ cycleId: ID, period: 1, expiresAt: START }, { amount: -3, held: -5 }, entry);
  assert.deepEqual(posting, {
    ...postingTo(CYCLE, -3, entry),
    period: 1,
    held: -5,
    expiresAt: START,
    reference: ID,
  });
});

test('the posting of a hold has the instant at which the hold expires', () => {
  const posting = postingTo(CYCLE, 0, { ...DRAW, kind: 'hold', holdExpiresAt: NOW + 60_000 });
  assert.deepEqual([posting.holdExpiresAt, posting.reference], [NOW + 60_000, null]);
});

const KINDS: readonly (readonly [kind: PostingKind, isListed: boolean, isByTime: boolean])[] = [
  ['add', true, false],
  ['start-cycle', true, false],
  ['renew', true, true],
  ['schedule-plan', false, false],
  ['change-plan', true, true],
  ['subtract', true, false],
  ['stop-cycle', false, false],
  ['hold', false, false],
  ['capture', true, false],
  ['release', false, false],
  ['lapse', false, true],
  ['refund', true, false],
];

for (const [kind, isShown, isCausedByTime] of KINDS) {
  test(`a transaction of the kind ${kind} is ${isShown ? '' : 'not '}listed by default and is caused by ${isCausedByTime ? 'time' : 'a request'}`, () => {
    assert.equal(isListed(kind), isShown);
    assert.equal(isByTime(kind), isCausedByTime);
  });
}

const [RUNNING, OVER] = [NOW + DAY_MS, NOW];
const REFUND = { ...DRAW, kind: 'refund', reference: ID } as const;

function refundOf(...parts: readonly (readonly [amount: number, expiresAt: number])[]): Transaction {
  const [first, ...others] = parts.map(([amount, expiresAt]) =>
    postingOn({ cycleId: ID, period: 0, expiresAt }, { amount, held: 0 }, REFUND),
  );
  assert(first);
  return transactionOf([first, ...others]);
}

test('credits that are refunded to an ended cycle do not count toward the amount of the refund', () => {
  assert.equal(refundOf([5, RUNNING], [7, OVER]).amount, 5);
  assert.equal(refundOf([5, RUNNING], [7, OVER + 1]).amount, 12, 'the cycle ends a millisecond later');
  assert.equal(refundOf([7, OVER]).amount, 0);
});

test('a refund expires when the last of the refunded cycles ends, even if that was before the refund', () => {
  assert.equal(refundOf([7, OVER], [5, RUNNING]).expiresAt, RUNNING);
  assert.equal(refundOf([7, OVER], [5, OVER - 1]).expiresAt, OVER);
});

test('captured credits of an ended cycle count toward the amount of the capture', () => {
  const entry = { ...DRAW, kind: 'capture', reference: ID } as const;
  const captured = postingOn({ cycleId: ID, period: 0, expiresAt: OVER }, { amount: -7, held: -7 }, entry);
  assert.equal(transactionOf([captured]).amount, -7);
  assert.equal(movedBy(captured), -7);
});

test('the expiry of a capture is the latest end of the cycles that it spent credits from; cycles that only get credits back do not count', () => {
  const entry = { ...DRAW, kind: 'capture', reference: ID } as const;
  const [spent, returned] = [
    postingOn({ cycleId: ID, period: 0, expiresAt: RUNNING }, { amount: -7, held: -7 }, entry),
    postingOn({ cycleId: LATER_ID, period: 0, expiresAt: RUNNING + 1 }, { amount: 0, held: -7 }, entry),
  ];
  assert.equal(transactionOf([spent, returned]).expiresAt, RUNNING);
  assert.equal(transactionOf([returned]).expiresAt, RUNNING + 1, 'a transaction that moved nothing');
});

test('the credits of a renewal beyond the amount of the plan rolled over; no other posting rolls over credits', () => {
  const terms = { type: 'recurring', plan: PLAN } as const;
  assert.equal(rolledOverBy({ kind: 'renew', amount: 130, terms }), 30);
  assert.equal(rolledOverBy({ kind: 'renew', amount: 100, terms }), 0);
  assert.equal(rolledOverBy({ kind: 'change-plan', amount: 130, terms }), 0);
  assert.equal(rolledOverBy({ kind: 'subtract', amount: -7, terms: null }), 0);
});

for (const [what, note, isOne] of [
  ['an empty string', '', false],
  ['a string of one character', '.', true],
  ['a string of 500 characters', 'x'.repeat(500), true],
  ['a string of 501 characters', 'x'.repeat(501), false],
  ['a string of 500 characters outside the Basic Multilingual Plane', '🦉'.repeat(500), true],
  ['a string of 501 characters outside the Basic Multilingual Plane', '🦉'.repeat(501), false],
  ['a string of several lines', 'a\n\tb', true],
  ['a string with a NUL', 'a\0b', false],
  ['a string with an unpaired surrogate', 'a\ud83e', false],
] as const) {
  test(`${what} ${isOne ? 'is' : 'is not'} a valid note`, () => assert.equal(isNote(note), isOne));
}
