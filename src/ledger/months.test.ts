// Tests that monthly periods end on the day of the month on which the cycle was created, or on the last day of a
// shorter month.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EVENTS_MAX, recurring, stateOf } from '../../test/ledger/ledger-builders.ts';
import { cyclesAt } from './balance.ts';
import { brokenRules, type Cycle, periodAfter, periodsMissed, renews } from './cycle.ts';
import { DAY_MS, INSTANT_MAX, type Instant, LAST_INSTANT, monthsBetween } from './instant.ts';
import { endOf } from './plan.ts';
import type { Posting } from './posting.ts';
import { dueCount, dueRenewals, dueTransactions, settle } from './settle.ts';
import type { EndUserState } from './state.ts';

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/** Correct for the years 2001 to 2399. */
function isLeapYear(year: number): boolean {
  return year % 4 === 0 && year % 100 !== 0;
}

/**
 * 9:30:00.123 on the given day, or on the last day of a shorter month. January is month 0, so month 12 is January of
 * the next year.
 */
function dayOf(year: number, month: number, day: number): Instant {
  const [inYear, inMonth] = [year + Math.floor(month / 12), month % 12];
  const days = inMonth === 1 && isLeapYear(inYear) ? 29 : (MONTH_DAYS[inMonth] as number);
  return Date.UTC(inYear, inMonth, Math.min(day, days), 9, 30, 0, 123);
}

function monthly(start: Instant, validityMonths = 1): Cycle {
  return recurring({ start, validityMonths });
}

const MONTHS = 48;

/** The 48 months after each start include a leap day or February 2100, which has no leap day. */
const START_MONTHS: readonly (readonly [year: number, month: number])[] = [
  [2026, 0],
  [2027, 11],
  [2028, 0],
  [2098, 2],
  [2099, 11],
];

for (const [year, month] of START_MONTHS) {
  for (const day of [28, 29, 30, 31]) {
    test(`each of 48 monthly periods from ${year}-${month + 1}-${day} ends on day ${day} or on the last day of the month`, () => {
      const start = dayOf(year, month, day);
      assert.equal(new Date(start).getUTCDate(), day);
      const cycle = monthly(start);
      for (let count = 1; count <= MONTHS; count++) {
        const [from, end] = [dayOf(year, month + count, day), dayOf(year, month + count + 1, day)];
        assert.equal(new Date(endOf(start, cycle.plan, count)).toISOString(), new Date(from).toISOString());
        const period = periodAfter(cycle, count);
        assert.deepEqual([period.period, period.start, period.end], [count, from, end]);
        assert.deepEqual(brokenRules(period), []);
        assert.equal(periodsMissed(cycle, from - 1), count - 1);
        assert.equal(periodsMissed(cycle, from), count);
        assert.equal(periodsMissed(cycle, end - 1), count);
        assert.deepEqual(cyclesAt(stateOf(cycle), from - 1), [periodAt(cycle, count - 1)]);
        assert.deepEqual(cyclesAt(stateOf(cycle), from), [period]);
      }
    });
  }
}

function periodAt(cycle: Cycle, count: number): Cycle {
  return count === 0 ? cycle : periodAfter(cycle, count);
}

test('a 12-month cycle that starts on a leap day renews on 28 February, or on 29 February in leap years', () => {
  const yearly = monthly(Date.UTC(2028, 1, 29), 12);
  const ends = [0, 1, 2, 3].map((count) => new Date(periodAt(yearly, count).end).toISOString().slice(0, 10));
  assert.deepEqual(ends, ['2029-02-28', '2030-02-28', '2031-02-28', '2032-02-29']);
});

test('a monthly cycle that starts on 31 May renews on 30 June and on 31 July, not on 1 July or 30 July', () => {
  const cycle = monthly(Date.UTC(2026, 4, 31));
  const { postings } = settle(stateOf(cycle), Date.UTC(2026, 9, 1), EVENTS_MAX);
  const days = postings.map(({ createdAt }) => new Date(createdAt).toISOString().slice(0, 10));
  assert.deepEqual(days, ['2026-06-30', '2026-07-31', '2026-08-31', '2026-09-30']);
});

const TWENTY_YEARS = 240;

function oneByOne(state: EndUserState, now: Instant): { state: EndUserState; postings: Posting[] } {
  let current = state;
  const postings: Posting[] = [];
  for (let step = 0; step <= EVENTS_MAX; step++) {
    const end = current.cycles.find(renews)?.end ?? INSTANT_MAX;
    if (end > now) return { state: current, postings };
    const settled = settle(current, end, EVENTS_MAX);
    assert.deepEqual([settled.postings.length, settled.isComplete], [1, true]);
    current = settled.state;
    postings.push(...settled.postings);
  }
  throw new Error('too many renewals');
}

for (const day of [1, 28, 29, 30, 31]) {
  test(`after 20 years of downtime, a monthly cycle that started on ${day} January is in the same period as in a ledger that was never down`, () => {
    const start = dayOf(2026, 0, day);
    const state = stateOf(monthly(start));
    const end = dayOf(2026, TWENTY_YEARS, day);
    for (const [now, renewals] of [
      [end - 1, TWENTY_YEARS - 1],
      [end, TWENTY_YEARS],
      [end + 1, TWENTY_YEARS],
    ] as const) {
      const steps = oneByOne(state, now);
      assert.equal(steps.postings.length, renewals);
      steps.postings.forEach(({ period, createdAt, expiresAt }, index) => {
        assert.deepEqual(
          [period, createdAt, expiresAt],
          [index + 1, dayOf(2026, index + 1, day), dayOf(2026, index + 2, day)],
        );
      });
      assert.deepEqual(settle(state, now, EVENTS_MAX), { ...steps, isComplete: true });
      assert.deepEqual(cyclesAt(state, now), steps.state.cycles);
      assert.deepEqual([...dueRenewals(state, now)].reverse(), steps.postings);
      assert.equal([...dueTransactions(state, now)].length, renewals);
      assert.equal(dueCount(state, now), renewals);
    }
  });
}

for (const months of [1, 2, 3, 6, 7, 12, 13, 120]) {
  test(`with validity_months = ${months}, each period lasts that many months and starts when the previous one ends`, () => {
    const cycle = monthly(dayOf(2026, 0, 31), months);
    for (let count = 0; count < 30; count++) {
      const { start, end } = periodAt(cycle, count);
      assert.equal(start, lastDayOfMonth(months * count));
      assert.equal(end, lastDayOfMonth(months * (count + 1)));
    }
  });
}

function lastDayOfMonth(months: number): Instant {
  return Date.UTC(2026, months + 1, 0, 9, 30, 0, 123);
}

test('for a validity in months, the formula for missed periods gives the same number as counting them, even near the last instant', () => {
  const starts = fc.oneof(
    fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) }),
    fc.integer({ min: 0, max: 400 }).map((month) => Date.UTC(2026, month + 1, 0)),
    fc.integer({ min: INSTANT_MAX - 4_000 * DAY_MS, max: LAST_INSTANT }),
  );
  const validities = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 120 }));
  fc.assert(
    fc.property(
      starts,
      validities,
      fc.nat({ max: 60 }),
      fc.constantFrom(-1, 0, 1),
      (start, months, periods, offset) => {
        const cycle = monthly(start, months);
        const now = Math.min(Math.max(endOf(start, cycle.plan, periods) + offset, start), INSTANT_MAX);
        let count = 0;
        let current = cycle;
        while (renews(current) && current.end <= now) {
          current = periodAfter(current, 1);
          count += 1;
        }
        assert.equal(periodsMissed(cycle, now), count);
        assert.deepEqual(periodAt(cycle, count), current);
        assert.deepEqual(brokenRules(current), []);
        assert.equal(periodsMissed(periodAt(cycle, Math.min(count, 3)), now), count - Math.min(count, 3));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('a monthly period that would end after the year 9999 ends at the last instant and is not renewed', () => {
  const last = periodAfter(monthly(Date.UTC(9999, 10, 15)), 1);
  assert.deepEqual([last.start, last.end], [Date.UTC(9999, 11, 15), INSTANT_MAX]);
  assert.equal(renews(last), false);
  assert.deepEqual(brokenRules(last), []);
  assert.equal(periodsMissed(last, INSTANT_MAX), 0);
});

test('the number of months between two instants is the largest number that can be added to the first without passing the second', () => {
  const cases: readonly (readonly [from: string, to: string, months: number])[] = [
    ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:00.000Z', 0],
    ['2026-01-31T12:00:00.000Z', '2026-02-28T11:59:59.999Z', 0],
    ['2026-01-31T12:00:00.000Z', '2026-02-28T12:00:00.000Z', 1],
    ['2026-01-31T12:00:00.000Z', '2026-03-31T11:59:59.999Z', 1],
    ['2026-01-31T12:00:00.000Z', '2026-03-31T12:00:00.000Z', 2],
    ['2027-12-31T00:00:00.000Z', '2028-02-28T23:59:59.999Z', 1],
    ['2027-12-31T00:00:00.000Z', '2028-02-29T00:00:00.000Z', 2],
    ['2099-12-31T00:00:00.000Z', '2100-02-28T00:00:00.000Z', 2],
    ['2026-01-15T00:00:00.000Z', '2046-01-15T00:00:00.000Z', 240],
  ];
  for (const [from, to, months] of cases) assert.equal(monthsBetween(Date.parse(from), Date.parse(to)), months, to);
});
