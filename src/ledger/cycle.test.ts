// Tests when a cycle ends and renews, its position in the spending order, and its invariants.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { idAt, NOW, oneTime, recurring } from '../../test/ledger/ledger-builders.ts';
import { AMOUNT_MAX } from './amount.ts';
import {
  assertCycle,
  assertReadable,
  brokenRules,
  type Cycle,
  createdAt,
  hasEnded,
  inSpendingOrder,
  isActiveRecurring,
  isLive,
  periodAfter,
  periodsMissed,
  renews,
  spendable,
  spendingOrder,
} from './cycle.ts';
import { DAY_MS, INSTANT_MAX, LAST_INSTANT, VALIDITY_DAYS_MAX } from './instant.ts';
import { type Invariant, InvariantViolation } from './invariant.ts';
import { type Plan, planOfText } from './plan.ts';

const MONTHLY = recurring({ remaining: 40 });
const END = NOW + 31 * DAY_MS;

test('a cycle counts as ended at its end, but not a millisecond before', () => {
  assert.equal(hasEnded(MONTHLY, END - 1), false);
  assert.equal(hasEnded(MONTHLY, END), true);
  assert.equal(hasEnded(MONTHLY, END + 1), true);
});

const RENEWING: readonly (readonly [what: string, change: Partial<Cycle>, renews: boolean])[] = [
  ['an active recurring cycle', {}, true],
  ['a canceled cycle', { status: 'canceled' }, false],
  ['a superseded cycle', { status: 'superseded' }, false],
  ['a one-time cycle', { type: 'one-time' }, false],
  ['a recurring cycle that ends a millisecond before the last instant', { end: INSTANT_MAX - 1 }, true],
  ['a recurring cycle that ends at the last instant', { end: INSTANT_MAX }, false],
];

for (const [what, change, expected] of RENEWING) {
  test(`${what} ${expected ? 'renews' : 'does not renew'}`, () =>
    assert.equal(renews({ ...MONTHLY, ...change }), expected));
}

test('only a recurring cycle that is neither canceled nor superseded is an active recurring cycle', () => {
  assert(isActiveRecurring(MONTHLY));
  assert(isActiveRecurring({ ...MONTHLY, end: INSTANT_MAX }), 'active although it will not renew');
  for (const status of ['canceled', 'superseded'] as const) assert(!isActiveRecurring({ ...MONTHLY, status }));
  assert(!isActiveRecurring(oneTime()));
});

test('a cycle is live until its end, and a cycle that renews is also live after its end', () => {
  for (const [, change, doesRenew] of RENEWING) {
    const cycle = { ...MONTHLY, ...change };
    assert.equal(isLive(cycle, cycle.end - 1), true);
    assert.equal(isLive(cycle, cycle.end), doesRenew);
    assert.equal(isLive(cycle, cycle.end + 1), doesRenew);
  }
});

const MISSED: readonly (readonly [when: string, now: number, missed: number])[] = [
  ['at its start', NOW, 0],
  ['a millisecond before its end', END - 1, 0],
  ['at its end', END, 1],
  ['a millisecond after its end', END + 1, 1],
  ['a millisecond before the end of the next period', END + 31 * DAY_MS - 1, 1],
  ['at the end of the next period', END + 31 * DAY_MS, 2],
  ['a hundred periods after its end', END + 100 * 31 * DAY_MS, 101],
];

for (const [when, now, missed] of MISSED) {
  test(`a recurring cycle has ${missed} due renewals ${when}`, () => assert.equal(periodsMissed(MONTHLY, now), missed));
}

test('after ten years that include three leap days, a cycle with daily periods has 3653 due renewals', () => {
  const daily = recurring({ start: Date.UTC(2016, 0, 1), validityDays: 1 });
  assert.equal(periodsMissed(daily, Date.UTC(2026, 0, 1) - 1), 3652);
  assert.equal(periodsMissed(daily, Date.UTC(2026, 0, 1)), 3653);
  const latest = periodAfter(daily, 3653);
  assert.deepEqual([latest.start, latest.end], [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)]);
});

test('a cycle that does not renew has no due renewals', () => {
  for (const [what, change, doesRenew] of RENEWING)
    if (!doesRenew) assert.equal(periodsMissed({ ...MONTHLY, ...change }, INSTANT_MAX), 0, what);
});

test('each period starts when the previous one ends, and has full credits and the next number', () => {
  const next = { ...MONTHLY, period: 1, remaining: 100, start: END, end: END + 31 * DAY_MS };
  assert.deepEqual(periodAfter(MONTHLY, 1), next);
  const third = { ...MONTHLY, period: 3, remaining: 100, start: END + 62 * DAY_MS, end: END + 93 * DAY_MS };
  assert.deepEqual(periodAfter(MONTHLY, 3), third);
  assert.deepEqual(periodAfter(next, 2), third);
});

test('a period that would end after the year 9999 ends at the last instant of that year and does not renew', () => {
  const start = INSTANT_MAX - 40 * DAY_MS;
  const last = periodAfter(recurring({ start }), 1);
  assert.equal(last.start, start + 31 * DAY_MS);
  assert.equal(last.end, INSTANT_MAX);
  assert.equal(renews(last), false);
  assert.equal(periodsMissed(last, INSTANT_MAX), 0);
});

test('a period that would start at the last instant of the year 9999 does not count as missed', () => {
  const cycle = recurring({ start: INSTANT_MAX - 2 * DAY_MS, validityDays: 1 });
  assert.equal(periodsMissed(cycle, LAST_INSTANT), 1);
  assert.equal(periodsMissed(cycle, INSTANT_MAX), 1);
});

test('the formula for missed periods gives the same number as counting the periods, even near the last instant', () => {
  const starts = fc.oneof(
    fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }),
    fc.integer({ min: INSTANT_MAX - 200 * DAY_MS, max: INSTANT_MAX - 2 }),
  );
  const validities = fc.integer({ min: 1, max: 40 });
  const periods = fc.oneof(fc.double({ min: 0, max: 60, noNaN: true }), fc.integer({ min: 0, max: 60 }));
  const offsetsMs = fc.constantFrom(-1, 0, 1);
  fc.assert(
    fc.property(starts, validities, periods, offsetsMs, (start, validityDays, periods, offset) => {
      const length = validityDays * DAY_MS;
      const wanted = start + Math.floor(periods * length) + offset;
      const now = Math.min(Math.max(wanted, start), INSTANT_MAX);
      let count = 0;
      let from = start;
      let end = Math.min(start + length, INSTANT_MAX);
      while (end <= now && end !== INSTANT_MAX) {
        from = end;
        end = Math.min(end + length, INSTANT_MAX);
        count += 1;
      }
      const cycle = recurring({ start, validityDays });
      assert.equal(periodsMissed(cycle, now), count);
      const latest = count === 0 ? cycle : periodAfter(cycle, count);
      assert.deepEqual([latest.start, latest.end, latest.period], [from, end, count]);
      assert.deepEqual(brokenRules(latest), []);
    }),
    { numRuns: 500 },
  );
});

test('the creation time of a cycle is the start of its first period, regardless of its current period', () => {
  assert.equal(createdAt(MONTHLY), NOW);
  assert.equal(createdAt(periodAfter(MONTHLY, 7)), NOW);
});

test('the cycle that started first is spent first, even if it was created later', () => {
  const [older, newer] = [recurring({ id: idAt(NOW, 3) }), recurring({ start: NOW + 1, id: idAt(NOW, 2) })];
  assert(spendingOrder(older, newer) < 0);
  assert(spendingOrder(newer, older) > 0);
});

test('of two cycles that started at the same instant, the one created first is spent first', () => {
  const [first, second] = [recurring({}, 2), recurring({}, 3)];
  assert(spendingOrder(first, second) < 0);
  assert(spendingOrder(second, first) > 0);
  assert.equal(spendingOrder(first, first), 0);
});

test('a renewed cycle is spent before credits that were added at the instant of its renewal', () => {
  const renewed = periodAfter(MONTHLY, 1);
  const added = oneTime({ start: END });
  assert(spendingOrder(renewed, added) < 0);
  assert(spendingOrder(added, renewed) > 0);
});

test('cycles in any order can be sorted into spending order', () => {
  const cycles = [0, 1, 2, 3, 4].map((day) => oneTime({ start: NOW + day * DAY_MS }));
  fc.assert(
    fc.property(fc.shuffledSubarray(cycles), (shuffled) => {
      const sorted = cycles.filter((cycle) => shuffled.includes(cycle));
      assert.deepEqual(inSpendingOrder(shuffled), sorted);
    }),
  );
});

const SOUND: readonly (readonly [what: string, cycle: Cycle])[] = [
  ['a recurring cycle', MONTHLY],
  ['a used-up cycle', recurring({ remaining: 0 })],
  ['an unspent cycle', recurring()],
  ['a canceled cycle', recurring({ status: 'canceled' })],
  ['a superseded cycle', recurring({ status: 'superseded' })],
  ['a cycle in a later period', periodAfter(MONTHLY, 12)],
  ['a one-time cycle', oneTime()],
  ['a cycle whose remaining credits are all held', recurring({ remaining: 40, held: 40 })],
  ['a cycle with a scheduled plan', recurring({ next: { id: idAt(NOW, 9), plan: MONTHLY.plan } })],
  ['a monthly cycle', recurring({ validityMonths: 1 })],
  ['a cycle of 120 months', recurring({ validityMonths: 120 })],
  [
    'a monthly cycle in a later period',
    periodAfter(recurring({ validityMonths: 1, start: Date.UTC(2026, 0, 31) }), 13),
  ],
  ['a cycle with credits that rolled over', periodAfter(recurring({ rolloverMax: 50 }), 1)],
  ['a cycle whose plan and rollover are together 2^53−1', recurring({ rolloverMax: AMOUNT_MAX - 100 })],
  ['a cycle of one credit', recurring({ amount: 1 })],
  ['a cycle of 2^53−1 credits', recurring({ amount: AMOUNT_MAX })],
  ['a cycle that starts in 1970', recurring({ start: 0 })],
  ['a cycle that lasts to the year 9999', recurring({ validityDays: VALIDITY_DAYS_MAX })],
  ['a cycle that starts in the last millisecond', recurring({ start: LAST_INSTANT })],
];

for (const [what, cycle] of SOUND) {
  test(`${what} breaks no rule`, () => {
    assert.deepEqual(brokenRules(cycle), []);
    assertCycle(cycle);
  });
}

type Rule = readonly [invariant: Invariant, sentence: string];

const AMOUNT: Rule = [1, 'a cycle starts with 1 to 2^53−1 credits'];
const REMAINING: Rule = [1, 'the remaining credits are between 0 and the amount'];
const HELD: Rule = [1, 'the held credits are between 0 and the remaining credits'];
const DAYS: Rule = [4, 'a cycle is valid for a whole number of days or months'];
const PLAN: Rule = [1, 'the credits of a plan plus the credits that can roll over are at most 2^53−1'];
const GRANT: Rule = [1, 'a period starts with the credits of its plan and at most `rolloverMax` more'];
const NEXT_PLAN: Rule = [3, 'only a cycle that renews can have a scheduled plan'];
const START: Rule = [4, 'the start of a cycle is a valid instant'];
const ENDING: Rule = [4, 'a cycle ends when its validity ends'];
const PERIOD: Rule = [3, 'periods are numbered from 0, and each period starts when the previous one ends'];
const ONE_TIME: Rule = [3, 'a one-time cycle has one period and no rollover, and is never stopped'];

function planned(change: Partial<Plan>): Pick<Cycle, 'plan'> {
  return { plan: { ...MONTHLY.plan, ...change } };
}

function valid(validityDays: number): Pick<Cycle, 'plan'> {
  return planned({ validityDays });
}

function validMonths(validityMonths: number): Pick<Cycle, 'plan'> {
  return planned({ validityDays: null, validityMonths });
}

const NEXT = { id: idAt(NOW, 9), plan: MONTHLY.plan };

const BROKEN: readonly (readonly [what: string, change: Partial<Cycle>, ...rules: Rule[]])[] = [
  ['without credits', { amount: 0, remaining: 0 }, AMOUNT, GRANT],
  ['of 100.5 credits', { amount: 100.5 }, AMOUNT, GRANT],
  ['of 2^53 credits', { amount: AMOUNT_MAX + 1 }, AMOUNT, GRANT],
  ['that is overdrawn', { remaining: -1 }, REMAINING, HELD],
  ['with more credits than it started with', { remaining: 101 }, REMAINING],
  ['with half a credit left', { remaining: 0.5 }, REMAINING],
  ['with more held credits than remain', { held: 41 }, HELD],
  ['with minus one held credit', { held: -1 }, HELD],
  ['with half a held credit', { held: 0.5 }, HELD],
  ['valid for 0 days', { ...valid(0), end: NOW }, DAYS, ENDING],
  ['valid for minus one day', { ...valid(-1), end: NOW - DAY_MS }, DAYS, ENDING],
  ['valid for half a day', { ...valid(0.5), end: NOW + DAY_MS / 2 }, DAYS],
  ['valid for more than the maximum number of days', { ...valid(VALIDITY_DAYS_MAX + 1), end: INSTANT_MAX }, DAYS],
  ['that starts before 1970', { start: -1 }, START, ENDING, PERIOD],
  ['that starts between two milliseconds', { start: NOW + 0.5 }, START, ENDING, PERIOD],
  ['that starts after the last instant', { start: INSTANT_MAX + 1 }, START, ENDING, PERIOD],
  ['that ends a millisecond early', { end: END - 1 }, ENDING],
  ['that ends a millisecond late', { end: END + 1 }, ENDING],
  ['with a validity that does not match its end', valid(30), ENDING],
  ['that ends when it starts', { id: idAt(INSTANT_MAX), start: INSTANT_MAX, end: INSTANT_MAX }, ENDING],
  ['with a period number that does not match its start', { period: 1 }, PERIOD],
  ['with period number −1', { period: -1 }, PERIOD],
  ['with period number −1 and the start of that period', { period: -1, start: NOW - 31 * DAY_MS, end: NOW }, PERIOD],
  ['that starts after its creation', { start: NOW + 1, end: END + 1 }, PERIOD],
  ['created after its start', { id: idAt(NOW + 1) }, PERIOD],
  ['that is one-time and stopped', { type: 'one-time', status: 'canceled' }, ONE_TIME],
  ['that is one-time and superseded', { type: 'one-time', status: 'superseded' }, ONE_TIME],
  ['valid for 0 months', { ...validMonths(0), end: NOW }, DAYS, ENDING],
  ['valid for 121 months', { ...validMonths(121), end: Date.UTC(2036, 1, 15, 9, 30, 0, 123) }, DAYS],
  ['valid for half a month', validMonths(0.5), DAYS, ENDING],
  ['valid for both days and months', planned({ validityMonths: 1 }), DAYS],
  ['valid neither for days nor for months', planned({ validityDays: null }), DAYS, ENDING],
  ['valid for a month that ends a day early', { ...validMonths(1), end: END - DAY_MS }, ENDING],
  ['with fewer credits than its plan', planned({ amount: 101 }), GRANT],
  ['with more credits than its plan, in its first period', planned({ amount: 99, rolloverMax: 50 }), GRANT],
  [
    'with more credits than its plan and the rollover together',
    { ...periodAfter(MONTHLY, 1), ...planned({ amount: 60, rolloverMax: 39 }) },
    GRANT,
  ],
  ['whose plan has no credits', { ...planned({ amount: 0 }) }, PLAN, GRANT],
  ['with a rollover of minus one credit', planned({ rolloverMax: -1 }), PLAN],
  ['with a rollover of half a credit', planned({ rolloverMax: 0.5 }), PLAN],
  ['whose plan and rollover exceed 2^53−1', planned({ rolloverMax: AMOUNT_MAX - 99 }), PLAN],
  ['that is one-time with a rollover', { type: 'one-time', ...planned({ rolloverMax: 1 }) }, ONE_TIME],
  ['that is canceled with a scheduled plan', { status: 'canceled', next: NEXT }, NEXT_PLAN],
  ['that is superseded with a scheduled plan', { status: 'superseded', next: NEXT }, NEXT_PLAN],
  ['that is one-time with a scheduled plan', { type: 'one-time', next: NEXT }, NEXT_PLAN],
  ['that is one-time in its second period', { ...periodAfter(MONTHLY, 1), type: 'one-time' }, ONE_TIME],
];

for (const [what, change, ...rules] of BROKEN) {
  test(`a cycle ${what} fails an assertion that names the broken rule`, () => {
    const cycle = { ...MONTHLY, ...change };
    assert.deepEqual(brokenRules(cycle), rules);
    assert.throws(
      () => assertCycle(cycle),
      (error) =>
        error instanceof InvariantViolation && error.invariant === rules[0]?.[0] && error.message === rules[0][1],
    );
  });
}

test('all remaining credits of a cycle can be spent, except those that are held', () => {
  assert.equal(spendable(MONTHLY), 40);
  assert.equal(spendable({ ...MONTHLY, held: 39 }), 1);
  assert.equal(spendable({ ...MONTHLY, held: 40 }), 0);
});

test('credits held in one period do not reduce the credits of the next period', () => {
  assert.deepEqual(periodAfter({ ...MONTHLY, held: 30 }, 1), periodAfter(MONTHLY, 1));
});

const UNREADABLE: readonly (readonly [what: string, change: Partial<Cycle>, invariant: Invariant])[] = [
  ['that is overdrawn', { remaining: -1 }, 1],
  ['with more credits than it started with', { remaining: 101 }, 1],
  ['with minus one held credit', { held: -1 }, 1],
  ['with more held credits than remain', { held: 41 }, 1],
  ['that ends a millisecond late', { end: END + 1 }, 4],
  ['that ends when it starts', { end: NOW, ...valid(0) }, 4],
  ['whose plan text is invalid', { plan: planOfText('100/31') }, 4],
  ['whose scheduled plan text is invalid', { next: { ...NEXT, plan: planOfText('100/31') } }, 4],
  ['whose scheduled plan has no credits', { next: { ...NEXT, plan: planOfText('0/31d') } }, 4],
];

for (const [what, change, invariant] of UNREADABLE) {
  test(`a cycle ${what} cannot be read from a store`, () => {
    assert.throws(() => assertReadable({ ...MONTHLY, ...change }), { invariant });
  });
}

test('a cycle that Scrip wrote can be read from a store', () => {
  const changes: readonly Partial<Cycle>[] = [{}, { held: 40 }, { remaining: 0 }, { remaining: 100 }];
  for (const change of changes) assertReadable({ ...MONTHLY, ...change });
  assertReadable(recurring({ validityDays: VALIDITY_DAYS_MAX }));
});
