// Compares the calendar of the reference model with the calendar of the runtime and with known dates.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY, dateOf, daysOf, instantOfDate, monthsAfter, nextDay } from './model-calendar.ts';

test('the calendar of the reference model has the same dates as the Gregorian calendar until the year 9999', () => {
  for (let at = 0; at < Date.UTC(10_000, 0); at += 97 * DAY + 12_345_678) {
    const expected = new Date(at);
    const date = dateOf(at);
    assert.deepEqual(
      [date.year, date.month, date.day],
      [expected.getUTCFullYear(), expected.getUTCMonth() + 1, expected.getUTCDate()],
    );
    assert.equal(instantOfDate(date), at);
  }
});

test('in the reference model, years that are divisible by 4 have a leap day, except years that are divisible by 100 but not by 400', () => {
  const lengths = [2023, 2024, 2028, 2100, 2000, 2400].map((year) => daysOf(year, 2));
  assert.deepEqual(lengths, [28, 29, 29, 28, 29, 29]);
});

test('in the reference model, adding months keeps the day of the month, or gives the last day of a month that is too short', () => {
  const time = 9 * 3_600_000 + 123;
  const after = (count: number) => new Date(monthsAfter(Date.UTC(2027, 11, 31) + time, count)).toISOString();
  assert.equal(after(0), '2027-12-31T09:00:00.123Z');
  assert.equal(after(1), '2028-01-31T09:00:00.123Z');
  assert.equal(after(2), '2028-02-29T09:00:00.123Z');
  assert.equal(after(3), '2028-03-31T09:00:00.123Z');
  assert.equal(after(4), '2028-04-30T09:00:00.123Z');
  assert.equal(after(14), '2029-02-28T09:00:00.123Z');
});

test('the reference model finds the next date with a given day of the month', () => {
  const iso = (instant: number) => new Date(instant).toISOString();
  assert.equal(iso(nextDay(Date.UTC(2026, 0, 31), 31, 0)), '2026-03-31T00:00:00.000Z');
  assert.equal(iso(nextDay(Date.UTC(2026, 0, 31), 31, 1)), '2026-01-31T00:00:00.001Z');
  assert.equal(iso(nextDay(Date.UTC(2096, 2, 1), 29, 0, 2)), '2104-02-29T00:00:00.000Z');
});
