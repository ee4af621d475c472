// Tests additions and subtractions: which cycles are spent first, and how large a balance can become.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  add as addition,
  type CycleChange,
  daysAgo,
  drawing,
  idAt,
  momentAt,
  NOW,
  oneTime,
  opening,
  recurring,
  settling,
  stateOf,
  subtract as subtraction,
} from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import { applyAll } from './apply.ts';
import { type Cycle, hasEnded, spendingOrder } from './cycle.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';

function add(cycles: readonly Cycle[], amount: number, validityDays = 31): Decision {
  return decide(stateOf(...cycles), addition(amount, { validityDays }), momentAt(NOW));
}

function subtract(cycles: readonly Cycle[], amount: number): Decision {
  return decide(stateOf(...cycles), subtraction(amount), momentAt(NOW));
}

function cyclesAfter(cycles: readonly Cycle[], { postings }: Decision): readonly Cycle[] {
  return applyAll(stateOf(...cycles), postings).cycles;
}

function left(cycles: readonly Cycle[], amount: number): number[] {
  const decision = subtract(cycles, amount);
  assert.deepEqual(decision.outcome, ACCEPTED);
  return cyclesAfter(cycles, decision).map(({ remaining }) => remaining);
}

function assertRefused(decision: Decision, refusal: object): void {
  assert.deepEqual(decision, { outcome: refusal, postings: [] });
}

const ACCEPTED = { refused: null, transactionId: idAt(NOW) };

test('an addition has one posting, which opens a one-time cycle that starts now and comes last in spending order', () => {
  const before = [oneTime({ start: daysAgo(1) })];
  const cycle = oneTime({ amount: 25, validityDays: 7 });
  const decision = add(before, 25, 7);
  assert.deepEqual(decision, { outcome: ACCEPTED, postings: [opening(cycle)] });
  assert.deepEqual(cyclesAfter(before, decision), [...before, cycle]);
});

test('an addition with the maximum validity expires at the last instant of the year 9999', () => {
  assert.equal(add([], 1, VALIDITY_DAYS_MAX).postings[0]?.expiresAt, INSTANT_MAX);
});

for (const amount of [0, -1, 0.5]) {
  test(`an amount of ${amount}, which the API rejects, fails an assertion`, () => {
    assert.throws(() => add([], amount), { name: 'AssertionError' });
    assert.throws(() => subtract([oneTime()], amount), { name: 'AssertionError' });
  });
}

const FULL_BUT_30 = AMOUNT_MAX - 30;

function bought(days: number, change: CycleChange = {}): Cycle {
  return oneTime({ start: daysAgo(days), ...change });
}

function active(days: number, change: CycleChange = {}): Cycle {
  return recurring({ start: daysAgo(days), ...change });
}

function endingIn(ms: number, amount = 100): Cycle {
  return bought(31, { amount, start: daysAgo(31) + ms });
}

const ROOMS: readonly (readonly [why: string, cycles: readonly Cycle[], validityDays: number, available: number])[] = [
  ['an end user without credits has room for 2^53−1', [], 31, AMOUNT_MAX],
  ['existing credits count', [bought(1, { amount: FULL_BUT_30 })], 31, 30],
  ['the credits of all cycles count', [bought(2, { amount: FULL_BUT_30 }), bought(1, { amount: 12 })], 31, 18],
  ['spent credits do not count', [bought(1, { amount: FULL_BUT_30, remaining: 5 })], 31, AMOUNT_MAX - 5],
  ['an end user with 2^53−1 credits has no room', [bought(1, { amount: AMOUNT_MAX })], 31, 0],
  ['a cycle that ends in a millisecond counts', [endingIn(1, FULL_BUT_30)], 31, 30],
  ['a cycle that ends now does not count', [endingIn(0, FULL_BUT_30)], 31, AMOUNT_MAX],
  ['a cycle that ended a millisecond ago does not count', [endingIn(-1, FULL_BUT_30)], 31, AMOUNT_MAX],
  ['the credits of the next renewal count', [active(1, { amount: FULL_BUT_30, remaining: 0 })], 31, 30],
  [
    'the next renewal does not count if the new credits expire by then',
    [active(1, { amount: FULL_BUT_30, remaining: 0 })],
    30,
    AMOUNT_MAX,
  ],
  [
    'credits that expire after the next renewal count in addition to it',
    [active(1, { amount: FULL_BUT_30, remaining: 0 }), bought(0, { amount: 7 })],
    31,
    23,
  ],
  [
    'credits that expire at the next renewal or before do not count in addition to it',
    [bought(2, { amount: 7 }), bought(1, { amount: 7 }), active(1, { amount: FULL_BUT_30, remaining: 0 })],
    31,
    30,
  ],
  [
    'the current credits count if they are more than the credits after the next renewal',
    [bought(1, { amount: 7 }), active(1, { amount: FULL_BUT_30 })],
    31,
    23,
  ],
  [
    'a renewal of a canceled cycle does not count',
    [active(1, { amount: FULL_BUT_30, remaining: 0, status: 'canceled' })],
    31,
    AMOUNT_MAX,
  ],
  [
    'a renewal of a cycle that lasts to the year 9999 does not count',
    [active(1, { amount: FULL_BUT_30, remaining: 0, validityDays: VALIDITY_DAYS_MAX })],
    VALIDITY_DAYS_MAX,
    AMOUNT_MAX,
  ],
];

for (const [why, cycles, validityDays, available] of ROOMS) {
  test(`an addition can raise a balance to 2^53−1 and no higher: ${why}`, () => {
    if (available < AMOUNT_MAX) {
      const requested = available + 1;
      assertRefused(add(cycles, requested, validityDays), { refused: 'BalanceTooLarge', requested, available });
    }
    if (available > 0) assert.deepEqual(add(cycles, available, validityDays).outcome, ACCEPTED);
  });
}

test('an addition fails an assertion if the next renewal would raise the balance above 2^53−1 even without the addition', () => {
  const cycles = [active(1, { amount: FULL_BUT_30, remaining: 0 }), bought(0, { amount: 31 })];
  assert.throws(() => add(cycles, 1, 32), { name: 'AssertionError' });
});

test('a subtraction drains the cycle that started first, then the next', () => {
  assert.deepEqual(left([bought(3), bought(2), bought(1)], 150), [0, 50, 100]);
});

test('a subtraction makes one posting for each cycle that it draws on, all in one transaction', () => {
  const [oldest, newest] = [bought(3, { validityDays: 90 }), bought(1)];
  assert.deepEqual(subtract([oldest, newest], 130).postings, [
    drawing(oldest, 100, NOW, 2),
    drawing(newest, 30, NOW, 2),
  ]);
  assert.deepEqual(subtract([oldest, newest], 100).postings, [drawing(oldest, 100, NOW, 2)]);
});

test('cycles are spent in the order of their starts, not of their ends', () => {
  assert.deepEqual(left([bought(3, { validityDays: 90 }), bought(2, { validityDays: 3 })], 60), [40, 100]);
});

test('of several cycles that started at the same instant, the one created first is drained first', () => {
  const start = daysAgo(1);
  const cycles = [oneTime({ start }, 4), oneTime({ start }, 2), oneTime({ start }, 3)].sort(spendingOrder);
  assert.deepEqual(
    cyclesAfter(cycles, subtract(cycles, 110)).map(({ id, remaining }) => [id, remaining]),
    [
      [idAt(start, 2), 0],
      [idAt(start, 3), 90],
      [idAt(start, 4), 100],
    ],
  );
});

test('credits of canceled, superseded and recurring cycles are spent like credits of one-time cycles', () => {
  const cycles = [active(4, { status: 'superseded' }), active(3, { status: 'canceled' }), active(2), bought(1)];
  assert.deepEqual(left(cycles, 350), [0, 0, 0, 50]);
});

test('a subtraction skips a used-up cycle and makes no posting for it', () => {
  const cycles = [bought(3, { remaining: 0 }), bought(2)];
  assert.deepEqual(left(cycles, 1), [0, 99]);
  assert.equal(subtract(cycles, 1).postings.length, 1);
});

test('the credits of a cycle that ends in 1 ms can be spent', () => {
  assert.deepEqual(left([endingIn(1), bought(1)], 1), [99, 100]);
});

for (const ms of [0, -1]) {
  test(`the credits of a cycle that ended ${-ms} ms ago cannot be spent`, () => {
    const cycles = [endingIn(ms), bought(1)];
    assert.deepEqual(left(cycles, 1), [100, 99]);
    assertRefused(subtract(cycles, 101), { refused: 'InsufficientFunds', requested: 101, available: 100 });
  });
}

test('all credits can be spent, and a subtraction of one more credit is refused', () => {
  const cycles = [bought(3), bought(2, { remaining: 20 })];
  assert.deepEqual(left(cycles, 120), [0, 0]);
  assertRefused(subtract(cycles, 121), { refused: 'InsufficientFunds', requested: 121, available: 120 });
});

test('a subtraction from an unknown end user is refused for insufficient funds', () => {
  assertRefused(subtract([], 1), { refused: 'InsufficientFunds', requested: 1, available: 0 });
});

test('2^53−1 credits can be spent in one subtraction', () => {
  assert.deepEqual(left([bought(2, { amount: AMOUNT_MAX - 1 }), bought(1, { amount: 1 })], AMOUNT_MAX), [0, 0]);
});

test('a settle command on a settled state is accepted and changes nothing', () => {
  const decision = decide(stateOf(bought(1)), settling(), momentAt(NOW));
  assert.deepEqual(decision, { outcome: { refused: null, transactionId: null }, postings: [] });
});

test('a refused command uses no transaction ID, and an accepted command uses one', () => {
  const moment = momentAt(NOW);
  const state = stateOf(bought(1));
  decide(state, subtraction(101), moment);
  decide(state, addition(AMOUNT_MAX), moment);
  assert.equal(decide(state, subtraction(1), moment).postings[0]?.transactionId, idAt(NOW, 2));
  assert.equal(decide(state, addition(1), moment).postings[0]?.transactionId, idAt(NOW, 3));
});

test('a subtraction takes its full amount from the oldest credits that have not expired, or is refused and takes nothing', () => {
  const many = fc
    .array(fc.tuple(fc.nat({ max: 40 }), fc.integer({ min: 1, max: 50 }), fc.nat({ max: 50 })), { maxLength: 6 })
    .map((rows) =>
      rows
        .map(([days, amount, spent], index) =>
          oneTime({ start: daysAgo(days), amount, remaining: Math.max(amount - spent, 0) }, index + 2),
        )
        .sort(spendingOrder),
    );
  fc.assert(
    fc.property(many, fc.integer({ min: 1, max: 200 }), (cycles, amount) => {
      const valid = cycles.filter((each) => !hasEnded(each, NOW));
      const available = valid.reduce((sum, { remaining }) => sum + remaining, 0);
      if (amount > available) {
        assertRefused(subtract(cycles, amount), { refused: 'InsufficientFunds', requested: amount, available });
        return;
      }
      const credits = valid.flatMap(({ id, remaining }) => Array<string>(remaining).fill(id)).slice(amount);
      const expected = cycles.map(({ id, remaining }) =>
        valid.some((each) => each.id === id) ? credits.filter((each) => each === id).length : remaining,
      );
      assert.deepEqual(left(cycles, amount), expected);
    }),
  );
});

test('every posting of a command has the note of the command, and an invalid note fails an assertion', () => {
  const notes = (note?: string | null) => {
    const command = subtraction(150, note === undefined ? {} : { note });
    const { postings } = decide(stateOf(bought(2), bought(1)), command, momentAt(NOW));
    return postings.map((posting) => posting.note);
  };
  assert.deepEqual(notes('ticket 4711'), ['ticket 4711', 'ticket 4711']);
  assert.deepEqual(notes(null), [null, null]);
  assert.deepEqual(notes(), [null, null]);
  for (const note of ['', 'x'.repeat(501), 'a\0b']) assert.throws(() => notes(note), { name: 'AssertionError' });
});

test('a posting has the actor of its command', () => {
  const { postings } = decide(stateOf(bought(1)), subtraction(1, { actor: 'key:8' }), momentAt(NOW));
  assert.equal(postings[0]?.actor, 'key:8');
  assert.equal(decide(stateOf(), addition(1, { actor: 'user:3' }), momentAt(NOW)).postings[0]?.actor, 'user:3');
});
