// A cycle by itself: when it is over, when it renews, in which order it is spent, and what is never true of one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AMOUNT_MAX } from './amount.ts';
import {
  assertCycle,
  brokenRules,
  burnOrder,
  type Cycle,
  createdAt,
  hasEnded,
  periodAfter,
  periodsMissed,
  renews,
} from './cycle.ts';
import { DAY_MS, endOf, INSTANT_MAX, VALIDITY_DAYS_MAX } from './instant.ts';
import { transactionId } from './transaction-id.ts';

const START = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
const END = START + 31 * DAY_MS;

function idAt(at: number, sequence = 1): string {
  return transactionId({ at, sequence, tail: 'aaaaaaaaaaaa' });
}

/** A recurring cycle of 31 days in its first period. */
function monthly(change: Partial<Cycle> = {}): Cycle {
  return {
    id: idAt(START),
    period: 0,
    type: 'recurring',
    status: 'active',
    amount: 100,
    remaining: 40,
    start: START,
    end: END,
    validityDays: 31,
    ...change,
  };
}

function recurring(start: number, validityDays: number): Cycle {
  return monthly({ id: idAt(start), start, end: endOf(start, validityDays), validityDays });
}

test('a cycle is over at its end, not before', () => {
  assert.equal(hasEnded(monthly(), END - 1), false);
  assert.equal(hasEnded(monthly(), END), true);
  assert.equal(hasEnded(monthly(), END + 1), true);
});

const RENEWING: readonly (readonly [what: string, change: Partial<Cycle>, renews: boolean])[] = [
  ['an active recurring cycle renews', {}, true],
  ['a canceled cycle does not renew', { status: 'canceled' }, false],
  ['a period that was renewed does not renew again', { status: 'renewed' }, false],
  ['a one-time cycle does not renew', { type: 'one-time' }, false],
  ['a cycle that ends a millisecond before the last instant renews', { end: INSTANT_MAX - 1 }, true],
  ['a cycle that ends at the last instant never renews', { end: INSTANT_MAX }, false],
];

for (const [what, change, expected] of RENEWING) {
  test(what, () => assert.equal(renews(monthly(change)), expected));
}

const MISSED: readonly (readonly [when: string, now: number, missed: number])[] = [
  ['at its start', START, 0],
  ['a millisecond before its end', END - 1, 0],
  ['at its end', END, 1],
  ['a millisecond after its end', END + 1, 1],
  ['a millisecond before the end of the next period', END + 31 * DAY_MS - 1, 1],
  ['at the end of the next period', END + 31 * DAY_MS, 2],
  ['a hundred periods on', END + 100 * 31 * DAY_MS, 101],
];

for (const [when, now, missed] of MISSED) {
  test(`a cycle has missed ${missed} periods ${when}`, () => assert.equal(periodsMissed(monthly(), now), missed));
}

test('ten years are 3653 daily periods, leap days included', () => {
  const start = Date.UTC(2016, 0, 1);
  const daily = recurring(start, 1);
  assert.equal(periodsMissed(daily, Date.UTC(2026, 0, 1) - 1), 3652);
  assert.equal(periodsMissed(daily, Date.UTC(2026, 0, 1)), 3653);
  const latest = periodAfter(daily, 3653);
  assert.equal(latest.start, Date.UTC(2026, 0, 1));
  assert.equal(latest.end, Date.UTC(2026, 0, 2));
});

test('only what renews misses periods', () => {
  for (const [what, change, isRenewing] of RENEWING) {
    if (!isRenewing) assert.equal(periodsMissed(monthly(change), INSTANT_MAX - 1), 0, what);
  }
});

test('the next period starts where the last one ended, full, and with the next number', () => {
  assert.deepEqual(periodAfter(monthly(), 1), {
    ...monthly(),
    period: 1,
    remaining: 100,
    start: END,
    end: END + 31 * DAY_MS,
  });
  assert.deepEqual(periodAfter(monthly(), 3), {
    ...monthly(),
    period: 3,
    remaining: 100,
    start: END + 62 * DAY_MS,
    end: END + 93 * DAY_MS,
  });
});

test('a period that would end past the year 9999 ends at its last instant, and is the last', () => {
  const start = INSTANT_MAX - 40 * DAY_MS;
  const last = periodAfter(recurring(start, 31), 1);
  assert.equal(last.start, start + 31 * DAY_MS);
  assert.equal(last.end, INSTANT_MAX);
  assert.equal(renews(last), false);
  assert.equal(periodsMissed(last, INSTANT_MAX), 0);
});

test('what does not renew has no next period', () => {
  assert.throws(() => periodAfter(monthly({ status: 'canceled' }), 1), { name: 'AssertionError' });
  assert.throws(() => periodAfter(monthly(), 0), { name: 'AssertionError' });
});

test('the closed form counts what stepping from one period to the next counts, also near the last instant', () => {
  const start = fc.oneof(
    fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }),
    fc.integer({ min: INSTANT_MAX - 200 * DAY_MS, max: INSTANT_MAX - 2 }),
  );
  const days = fc.integer({ min: 1, max: 40 });
  /** How long after the start to look, in periods, and a millisecond more or less. */
  const periods = fc.oneof(fc.double({ min: 0, max: 60, noNaN: true }), fc.integer({ min: 0, max: 60 }));
  const offset = fc.constantFrom(-1, 0, 1);
  fc.assert(
    fc.property(start, days, periods, offset, (start, days, periods, offset) => {
      const wanted = start + Math.floor(periods * days * DAY_MS) + offset;
      const now = Math.min(Math.max(wanted, start), INSTANT_MAX - 1);
      let turns = 0;
      let from = start;
      let end = Math.min(start + days * DAY_MS, INSTANT_MAX);
      while (end <= now && end !== INSTANT_MAX) {
        from = end;
        end = Math.min(end + days * DAY_MS, INSTANT_MAX);
        turns += 1;
      }
      const cycle = recurring(start, days);
      assert.equal(periodsMissed(cycle, now), turns);
      const latest = turns === 0 ? cycle : periodAfter(cycle, turns);
      assert.deepEqual([latest.start, latest.end, latest.period], [from, end, turns]);
      assert.deepEqual(brokenRules(latest), []);
    }),
    { numRuns: 500 },
  );
});

test('a cycle was created when its first period started, whichever period this is', () => {
  assert.equal(createdAt(monthly()), START);
  assert.equal(createdAt(periodAfter(monthly(), 7)), START);
});

test('the cycle that started first is spent first', () => {
  const older = monthly({ start: START });
  const newer = monthly({ start: START + 1 });
  assert(burnOrder(older, newer) < 0);
  assert(burnOrder(newer, older) > 0);
});

test('of cycles that started together, the one created first is spent first', () => {
  const first = monthly({ id: idAt(START, 1) });
  const second = monthly({ id: idAt(START, 2) });
  assert(burnOrder(first, second) < 0);
  assert(burnOrder(second, first) > 0);
  assert.equal(burnOrder(first, first), 0);
});

test('a renewed period is spent before what was added at the instant of its renewal', () => {
  const renewed = periodAfter(monthly(), 1);
  const added = monthly({ id: idAt(END), type: 'one-time', start: END });
  assert(burnOrder(renewed, added) < 0);
  assert(burnOrder(added, renewed) > 0);
});

const SOUND: readonly (readonly [what: string, cycle: Cycle])[] = [
  ['a recurring cycle', monthly()],
  ['a used-up cycle', monthly({ remaining: 0 })],
  ['an untouched cycle', monthly({ remaining: 100 })],
  ['a canceled cycle', monthly({ status: 'canceled' })],
  ['a renewed period', monthly({ status: 'renewed' })],
  ['a later period', periodAfter(monthly(), 12)],
  ['a one-time cycle', monthly({ type: 'one-time' })],
  ['a cycle of one credit', monthly({ amount: 1, remaining: 1 })],
  ['a cycle of 2^53−1 credits', monthly({ amount: AMOUNT_MAX })],
  ['a cycle that starts in 1970', recurring(0, 1)],
  ['a cycle without end', recurring(START, VALIDITY_DAYS_MAX)],
  ['a cycle of the last millisecond', recurring(INSTANT_MAX - 1, 1)],
];

for (const [what, cycle] of SOUND) {
  test(`${what} breaks no rule`, () => {
    assert.deepEqual(brokenRules(cycle), []);
    assertCycle(cycle);
  });
}

const BROKEN: readonly (readonly [what: string, change: Partial<Cycle>, rule: string])[] = [
  ['of no credits', { amount: 0, remaining: 0 }, 'a cycle starts with 1 to 2^53−1 credits'],
  ['of half a credit more', { amount: 100.5 }, 'a cycle starts with 1 to 2^53−1 credits'],
  ['of 2^53 credits', { amount: AMOUNT_MAX + 1 }, 'a cycle starts with 1 to 2^53−1 credits'],
  ['that is overdrawn', { remaining: -1 }, 'what remains is between 0 and the amount'],
  ['with more than it started with', { remaining: 101 }, 'what remains is between 0 and the amount'],
  ['with half a credit left', { remaining: 0.5 }, 'what remains is between 0 and the amount'],
  ['valid for no day', { validityDays: 0, end: START }, 'a cycle is valid for whole days'],
  ['valid for half a day', { validityDays: 0.5, end: START + DAY_MS / 2 }, 'a cycle is valid for whole days'],
  ['valid for more days than there are', { validityDays: VALIDITY_DAYS_MAX + 1 }, 'a cycle is valid for whole days'],
  ['that starts before 1970', { start: -1 }, 'a cycle starts at an instant'],
  ['that starts between two milliseconds', { start: START + 0.5 }, 'a cycle starts at an instant'],
  ['that starts past the last instant', { start: INSTANT_MAX + 1 }, 'a cycle starts at an instant'],
  ['that ends a millisecond early', { end: END - 1 }, 'a cycle ends its validity after its start'],
  ['that ends a millisecond late', { end: END + 1 }, 'a cycle ends its validity after its start'],
  ['of another validity', { validityDays: 30 }, 'a cycle ends its validity after its start'],
  ['that ends where it starts', { start: INSTANT_MAX, end: INSTANT_MAX }, 'a cycle ends its validity after its start'],
  ['of another period', { period: 1 }, 'periods are counted from 0 and abut, from the creation on'],
  ['before the first period', { period: -1 }, 'periods are counted from 0 and abut, from the creation on'],
  [
    'before the first period, that abuts',
    { period: -1, start: START - 31 * DAY_MS, end: START },
    'periods are counted from 0 and abut, from the creation on',
  ],
  [
    'that starts after its creation',
    { start: START + 1, end: END + 1 },
    'periods are counted from 0 and abut, from the creation on',
  ],
  ['created later', { id: idAt(START + 1) }, 'periods are counted from 0 and abut, from the creation on'],
  ['stopped, and one-time', { type: 'one-time', status: 'canceled' }, 'a one-time cycle has one period and no stop'],
  ['renewed, and one-time', { type: 'one-time', status: 'renewed' }, 'a one-time cycle has one period and no stop'],
  ['one-time, in its second period', { type: 'one-time', period: 1 }, 'a one-time cycle has one period and no stop'],
];

for (const [what, change, rule] of BROKEN) {
  test(`a cycle ${what} breaks a rule, and says which`, () => {
    assert(brokenRules(monthly(change)).includes(rule), `broken: ${brokenRules(monthly(change))}`);
    assert.throws(() => assertCycle(monthly(change)), { name: 'AssertionError' });
  });
}
