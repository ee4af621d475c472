// Additions and subtractions: oldest first, all or nothing, and never more than 2^53−1 for anyone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AMOUNT_MAX } from './amount.ts';
import type { Add, Subtract } from './command.ts';
import { burnOrder, type Cycle, hasEnded } from './cycle.ts';
import { type Decision, decide } from './decide.ts';
import { DAY_MS, endOf, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { transactionId } from './transaction-id.ts';

const NOW = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const USER = { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001', actor: 'key:7' };
const NEW_ID = idAt(NOW, 1);

function idAt(at: number, sequence: number): string {
  return transactionId({ at, sequence, tail: 'aaaaaaaaaaaa' });
}

function momentAt(now: number) {
  let sequence = 0;
  return { now, nextId: () => idAt(now, ++sequence) };
}

/** A one-time cycle that started `daysAgo`, in the order of `place` where several did at once. */
function cycle(daysAgo: number, change: Partial<Cycle> = {}, place = 1): Cycle {
  const start = NOW - daysAgo * DAY_MS;
  const validityDays = change.validityDays ?? 31;
  const amount = change.amount ?? 100;
  return Object.freeze({
    id: idAt(start, place),
    period: 0,
    type: 'one-time',
    status: 'active',
    amount,
    remaining: amount,
    start,
    end: endOf(start, validityDays),
    validityDays,
    ...change,
  });
}

function add(cycles: readonly Cycle[], amount: number, validityDays = 31, now = NOW): Decision {
  const command: Add = { ...USER, kind: 'add', amount, validityDays };
  return decide(Object.freeze(cycles), command, momentAt(now));
}

function subtract(cycles: readonly Cycle[], amount: number, now = NOW): Decision {
  const command: Subtract = { ...USER, kind: 'subtract', amount };
  return decide(Object.freeze(cycles), command, momentAt(now));
}

function left(decision: Decision): number[] {
  return decision.cycles.map(({ remaining }) => remaining);
}

function assertRefused(decision: Decision, cycles: readonly Cycle[], refusal: object): void {
  assert.deepEqual(decision.outcome, refusal);
  assert.equal(decision.cycles, cycles, 'a refusal changes nothing');
  assert.deepEqual(decision.postings, []);
}

const ACCEPTED = { refused: null, cycle: null };

test('an addition opens a one-time cycle from now on, behind all others, with one posting', () => {
  const before = [cycle(1)];
  const { outcome, cycles, postings } = add(before, 25, 7);
  assert.deepEqual(outcome, ACCEPTED);
  assert.equal(cycles[0], before[0]);
  assert.deepEqual(cycles.slice(1), [
    {
      id: NEW_ID,
      period: 0,
      type: 'one-time',
      status: 'active',
      amount: 25,
      remaining: 25,
      start: NOW,
      end: NOW + 7 * DAY_MS,
      validityDays: 7,
    },
  ]);
  assert.deepEqual(postings, [
    {
      transactionId: NEW_ID,
      cycleId: NEW_ID,
      period: 0,
      kind: 'add',
      amount: 25,
      createdAt: NOW,
      expiresAt: NOW + 7 * DAY_MS,
      actor: 'key:7',
      note: null,
    },
  ]);
});

test('an addition without end lasts to the last instant of the year 9999', () => {
  assert.equal(add([], 1, VALIDITY_DAYS_MAX).postings[0]?.expiresAt, INSTANT_MAX);
});

for (const amount of [0, -1, 0.5]) {
  test(`an amount of ${amount} never gets as far as the rules`, () => {
    assert.throws(() => add([], amount), { name: 'AssertionError' });
    assert.throws(() => subtract([cycle(1)], amount), { name: 'AssertionError' });
  });
}

// The room: 2^53−1 credits for each end user, now and when the active cycle renews.

const FULL_BUT_30 = AMOUNT_MAX - 30;

function active(daysAgo: number, change: Partial<Cycle> = {}): Cycle {
  return cycle(daysAgo, { type: 'recurring', ...change });
}

/** Each row is refused at `available + 1`, with these numbers, and accepted at `available`. */
const ROOMS: readonly (readonly [why: string, cycles: readonly Cycle[], validityDays: number, available: number])[] = [
  ['who has nothing may get all there is', [], 31, AMOUNT_MAX],
  ['what one has counts', [cycle(1, { amount: FULL_BUT_30 })], 31, 30],
  ['all cycles count', [cycle(2, { amount: FULL_BUT_30 }), cycle(1, { amount: 12 })], 31, 18],
  ['what is spent does not count', [cycle(1, { amount: FULL_BUT_30, remaining: 5 })], 31, AMOUNT_MAX - 5],
  ['who is full gets nothing', [cycle(1, { amount: AMOUNT_MAX })], 31, 0],
  ['a cycle that ends in a millisecond counts', [endingIn(1, FULL_BUT_30)], 31, 30],
  ['a cycle that ends now does not count', [endingIn(0, FULL_BUT_30)], 31, AMOUNT_MAX],
  ['a cycle that ended a millisecond ago does not count', [endingIn(-1, FULL_BUT_30)], 31, AMOUNT_MAX],
  [
    'room is kept for what the active cycle gets when it renews',
    [active(1, { amount: FULL_BUT_30, remaining: 0 })],
    31,
    30,
  ],
  [
    'what is over when the active cycle renews needs no such room',
    [active(1, { amount: FULL_BUT_30, remaining: 0 })],
    30,
    AMOUNT_MAX,
  ],
  [
    'what others still have at the renewal counts',
    [cycle(0, { amount: 7 }), active(1, { amount: FULL_BUT_30, remaining: 0 })],
    31,
    23,
  ],
  [
    'what others lose at the renewal or before does not count',
    [cycle(1, { amount: 7 }), cycle(2, { amount: 7 }), active(1, { amount: FULL_BUT_30, remaining: 0 })],
    31,
    30,
  ],
  [
    'what is left now counts when it is more than at the renewal',
    [cycle(1, { amount: 7 }), active(1, { amount: FULL_BUT_30 })],
    31,
    23,
  ],
  [
    'a canceled cycle needs no room for a renewal',
    [active(1, { amount: FULL_BUT_30, remaining: 0, status: 'canceled' })],
    31,
    AMOUNT_MAX,
  ],
  [
    'a cycle that never comes to its end needs no room for a renewal',
    [active(1, { amount: FULL_BUT_30, remaining: 0, validityDays: VALIDITY_DAYS_MAX })],
    VALIDITY_DAYS_MAX,
    AMOUNT_MAX,
  ],
];

function endingIn(ms: number, amount = 100): Cycle {
  return cycle(31, { amount, start: NOW - 31 * DAY_MS + ms, end: NOW + ms });
}

for (const [why, cycles, validityDays, available] of ROOMS) {
  test(`an addition may take an end user to 2^53−1 and no further: ${why}`, () => {
    if (available < AMOUNT_MAX) {
      const requested = available + 1;
      const refusal = { refused: 'BalanceTooLarge', requested, available };
      assertRefused(add(cycles, requested, validityDays), cycles, refusal);
    }
    if (available > 0) assert.deepEqual(add(cycles, available, validityDays).outcome, ACCEPTED);
  });
}

test('whose next renewal would go past 2^53−1, which no addition allows, is not written to', () => {
  const cycles = [cycle(0, { amount: 31 }), active(1, { amount: FULL_BUT_30, remaining: 0 })];
  assert.throws(() => add(cycles, 1, 32), { name: 'AssertionError' });
});

// Subtractions.

test('a subtraction drains the cycle that started first, then the next', () => {
  const decision = subtract([cycle(3), cycle(2), cycle(1)], 150);
  assert.deepEqual(decision.outcome, ACCEPTED);
  assert.deepEqual(left(decision), [0, 50, 100]);
});

test('a subtraction is one posting for each cycle that it draws on, all of one transaction', () => {
  const [oldest, newest] = [cycle(3, { validityDays: 90 }), cycle(1)];
  assert.deepEqual(subtract([oldest, newest], 130).postings, [
    {
      transactionId: NEW_ID,
      cycleId: oldest.id,
      period: 0,
      kind: 'subtract',
      amount: -100,
      createdAt: NOW,
      expiresAt: oldest.end,
      actor: 'key:7',
      note: null,
    },
    {
      transactionId: NEW_ID,
      cycleId: newest.id,
      period: 0,
      kind: 'subtract',
      amount: -30,
      createdAt: NOW,
      expiresAt: newest.end,
      actor: 'key:7',
      note: null,
    },
  ]);
});

test('the order of spending is the order of starting, not of ending', () => {
  assert.deepEqual(left(subtract([cycle(3, { validityDays: 90 }), cycle(2, { validityDays: 3 })], 60)), [40, 100]);
});

test('of cycles that started together, the one created first is drained first', () => {
  const cycles = [cycle(1, {}, 3), cycle(1, {}, 1), cycle(1, {}, 2)].sort(burnOrder);
  assert.deepEqual(
    subtract(cycles, 110).cycles.map(({ id, remaining }) => [id, remaining]),
    [
      [idAt(NOW - DAY_MS, 1), 0],
      [idAt(NOW - DAY_MS, 2), 90],
      [idAt(NOW - DAY_MS, 3), 100],
    ],
  );
});

test('canceled and recurring cycles are spent like one-time ones', () => {
  const cycles = [active(3, { status: 'canceled' }), active(2), cycle(1)];
  assert.deepEqual(left(subtract(cycles, 250)), [0, 0, 50]);
});

test('a cycle that is used up is passed over, without a posting', () => {
  const decision = subtract([cycle(3, { remaining: 0 }), cycle(2)], 1);
  assert.deepEqual(left(decision), [0, 99]);
  assert.equal(decision.postings.length, 1);
});

test('a cycle that ends in a millisecond is spent', () => {
  const cycles = [endingIn(1), cycle(1)];
  assert.deepEqual(left(subtract(cycles, 1)), [99, 100]);
});

for (const ms of [0, -1]) {
  test(`a cycle that ended ${-ms} ms ago is not spent`, () => {
    const cycles = [endingIn(ms), cycle(1)];
    assert.deepEqual(left(subtract(cycles, 1)), [100, 99]);
    const refusal = { refused: 'InsufficientFunds', requested: 101, available: 100 };
    assertRefused(subtract(cycles, 101), cycles, refusal);
  });
}

test('all credits can be spent, and not one more: a subtraction that is not covered changes nothing', () => {
  const cycles = [cycle(3), cycle(2, { remaining: 20 })];
  assert.deepEqual(left(subtract(cycles, 120)), [0, 0]);
  assertRefused(subtract(cycles, 121), cycles, { refused: 'InsufficientFunds', requested: 121, available: 120 });
});

test('an end user never heard of has insufficient funds', () => {
  const cycles: Cycle[] = [];
  assertRefused(subtract(cycles, 1), cycles, { refused: 'InsufficientFunds', requested: 1, available: 0 });
});

test('2^53−1 credits can be spent at once', () => {
  const cycles = [cycle(2, { amount: AMOUNT_MAX - 1 }), cycle(1, { amount: 1 })];
  assert.deepEqual(left(subtract(cycles, AMOUNT_MAX)), [0, 0]);
});

test('a renewal as such decides nothing: settling is what enters it', () => {
  const cycles = [cycle(1)];
  const { account, endUser } = USER;
  assertRefused(decide(cycles, { kind: 'renew', account, endUser }, momentAt(NOW)), cycles, ACCEPTED);
});

test('whatever is spent comes from the oldest credits, in full or not at all', () => {
  const many = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 50 }), fc.nat({ max: 50 })), {
      maxLength: 6,
    })
    .map((rows) =>
      rows
        .map(([daysAgo, amount, spent], place) =>
          cycle(daysAgo, { amount, remaining: Math.max(amount - spent, 0) }, place + 1),
        )
        .sort(burnOrder),
    );
  fc.assert(
    fc.property(many, fc.integer({ min: 1, max: 200 }), (cycles, amount) => {
      const valid = cycles.filter((each) => !hasEnded(each, NOW));
      const available = valid.reduce((sum, { remaining }) => sum + remaining, 0);
      const decision = subtract(cycles, amount);
      if (amount > available) {
        assertRefused(decision, cycles, { refused: 'InsufficientFunds', requested: amount, available });
        return;
      }
      const credits = valid.flatMap(({ id, remaining }) => Array<string>(remaining).fill(id));
      for (const [index, { id, remaining }] of decision.cycles.entries()) {
        const isValid = valid.some((each) => each.id === id);
        const expected = isValid ? credits.slice(amount).filter((each) => each === id).length : undefined;
        assert.equal(remaining, expected ?? cycles[index]?.remaining);
      }
      const moved = decision.postings.reduce((sum, posting) => sum + posting.amount, 0);
      assert.equal(moved, -amount);
    }),
  );
});

test('a note is kept with every posting of its command, and one that is none never gets as far as the rules', () => {
  const moment = { now: NOW, nextId: () => NEW_ID };
  const cycles = [cycle(1), cycle(2)];
  const spend = (note?: string | null): Subtract => ({
    ...USER,
    kind: 'subtract',
    amount: 150,
    ...(note === undefined ? {} : { note }),
  });
  const notes = (note?: string | null) => decide(cycles, spend(note), moment).postings.map((posting) => posting.note);
  assert.deepEqual(notes('ticket 4711'), ['ticket 4711', 'ticket 4711']);
  assert.deepEqual(
    [notes(null), notes()],
    [
      [null, null],
      [null, null],
    ],
  );
  for (const note of ['', 'x'.repeat(501), 'a\0b']) assert.throws(() => notes(note), { name: 'AssertionError' });
});
