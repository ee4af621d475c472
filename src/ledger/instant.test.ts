// Tests time in the ledger: every day has 24 hours, and the last instant is the end of the year 9999.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  addMonths,
  DAY_MS,
  INSTANT_MAX,
  isInstant,
  LAST_INSTANT,
  VALIDITY_DAYS_DEFAULT,
  VALIDITY_DAYS_MAX,
} from './instant.ts';
import { endOf as endOfPlan } from './plan.ts';

function endOf(start: number, validityDays: number): number {
  return endOfPlan(start, { validityDays, validityMonths: null });
}

test('the last instant of the ledger is the last millisecond of the year 9999', () => {
  assert.equal(new Date(INSTANT_MAX).toISOString(), '9999-12-31T23:59:59.999Z');
});

test('credits are valid for 31 days if a request does not set a validity', () => {
  assert.equal(VALIDITY_DAYS_DEFAULT, 31);
});

const ENDS: readonly (readonly [name: string, start: string, days: number, end: string])[] = [
  ['a day is 24 hours, to the millisecond', '2026-01-15T09:30:00.123Z', 1, '2026-01-16T09:30:00.123Z'],
  ['a day is 24 hours when clocks in Europe go forward', '2026-03-28T12:00:00.000Z', 1, '2026-03-29T12:00:00.000Z'],
  ['a leap day counts as a day', '2028-02-28T00:00:00.000Z', 1, '2028-02-29T00:00:00.000Z'],
  ['31 days from 31 January end in March', '2026-01-31T00:00:00.000Z', 31, '2026-03-03T00:00:00.000Z'],
  [
    'a cycle can end a millisecond before the last instant of the year 9999',
    '9999-12-30T23:59:59.998Z',
    1,
    '9999-12-31T23:59:59.998Z',
  ],
  ['a cycle can end at the last instant of the year 9999', '9999-12-30T23:59:59.999Z', 1, '9999-12-31T23:59:59.999Z'],
  [
    'a cycle that would end in the first millisecond after the year 9999 ends a millisecond earlier',
    '9999-12-31T00:00:00.000Z',
    1,
    '9999-12-31T23:59:59.999Z',
  ],
  [
    'a cycle that would end long after the year 9999 ends at the last instant of that year',
    '2026-01-15T09:30:00.123Z',
    VALIDITY_DAYS_MAX,
    '9999-12-31T23:59:59.999Z',
  ],
];

for (const [name, start, days, end] of ENDS) {
  test(name, () => assert.equal(new Date(endOf(Date.parse(start), days)).toISOString(), end));
}

test('from the start of 1970, the maximum validity ends at the last instant of the year 9999, and a validity that is a day shorter ends earlier', () => {
  assert.equal(endOf(0, VALIDITY_DAYS_MAX), INSTANT_MAX);
  assert.equal(endOf(0, VALIDITY_DAYS_MAX - 1), (VALIDITY_DAYS_MAX - 1) * DAY_MS);
  assert((VALIDITY_DAYS_MAX - 1) * DAY_MS < INSTANT_MAX);
});

test('a cycle ends after its start, and never later than the last instant of the year 9999', () => {
  const starts = fc.integer({ min: 0, max: INSTANT_MAX - 1 });
  const days = fc.integer({ min: 1, max: VALIDITY_DAYS_MAX });
  fc.assert(
    fc.property(starts, days, (start, days) => {
      const end = endOf(start, days);
      assert(start < end && end <= INSTANT_MAX);
      assert(end === INSTANT_MAX || end - start === days * DAY_MS);
    }),
  );
});

const INSTANTS: readonly (readonly [value: number, isOne: boolean])[] = [
  [-1, false],
  [0, true],
  [0.5, false],
  [INSTANT_MAX, true],
  [INSTANT_MAX + 1, false],
  [Number.NaN, false],
  [Number.POSITIVE_INFINITY, false],
];

test('an instant is a whole number of milliseconds since 1970, up to the end of the year 9999', () => {
  for (const [value, isOne] of INSTANTS) assert.equal(isInstant(value), isOne, String(value));
});

test('a cycle that starts at the latest instant that a clock is allowed to return still ends after its start', () => {
  assert.equal(endOf(LAST_INSTANT, 1), LAST_INSTANT + 1);
  assert(isInstant(LAST_INSTANT + 1) && !isInstant(LAST_INSTANT + 2));
});

const MONTH_ENDS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

for (const year of [2026, 2028, 2000, 2100]) {
  const isLeap = year === 2028 || year === 2000;
  for (const day of [28, 29, 30, 31]) {
    test(`each date one to twelve months after ${day} December ${year - 1} is day ${day} of a month, or the last day of a shorter month`, () => {
      const from = Date.UTC(year - 1, 11, day, 9, 30, 0, 123);
      for (const [month, end] of MONTH_ENDS.entries()) {
        const last = month === 1 && isLeap ? 29 : end;
        const expected = Date.UTC(year, month, Math.min(day, last), 9, 30, 0, 123);
        assert.equal(new Date(addMonths(from, month + 1)).toISOString(), new Date(expected).toISOString());
      }
    });
  }
}

const MONTHS: readonly (readonly [from: string, months: number, to: string])[] = [
  ['2026-01-15T09:30:00.123Z', 0, '2026-01-15T09:30:00.123Z'],
  ['2026-05-31T00:00:00.000Z', 1, '2026-06-30T00:00:00.000Z'],
  ['2026-05-31T23:59:59.999Z', 1, '2026-06-30T23:59:59.999Z'],
  ['2026-05-31T23:59:59.999Z', 2, '2026-07-31T23:59:59.999Z'],
  ['2026-12-31T12:00:00.000Z', 1, '2027-01-31T12:00:00.000Z'],
  ['2028-02-29T12:00:00.000Z', 12, '2029-02-28T12:00:00.000Z'],
  ['2028-02-29T12:00:00.000Z', 48, '2032-02-29T12:00:00.000Z'],
  ['2026-02-28T12:00:00.000Z', 1, '2026-03-28T12:00:00.000Z'],
  ['1970-01-01T00:00:00.000Z', 1, '1970-02-01T00:00:00.000Z'],
];

for (const [from, months, to] of MONTHS) {
  test(`${months} months after ${from} is ${to}`, () => {
    assert.equal(new Date(addMonths(Date.parse(from), months)).toISOString(), to);
  });
}

test('adding months to the last instant gives a later instant', () => {
  assert(addMonths(INSTANT_MAX, 1) > INSTANT_MAX);
  assert(addMonths(INSTANT_MAX, 1_000) > INSTANT_MAX);
});

test('adding one more month gives an instant that is 28 to 31 days later, at the same time of day', () => {
  const from = fc.integer({ min: 0, max: INSTANT_MAX });
  fc.assert(
    fc.property(from, fc.nat({ max: 1_200 }), (at, months) => {
      const [one, next] = [addMonths(at, months), addMonths(at, months + 1)];
      assert(one < next && next - one <= 31 * DAY_MS && next - one >= 28 * DAY_MS);
      assert.equal(one % DAY_MS, at % DAY_MS);
    }),
  );
});
