// The calendar of the reference model, implemented without JavaScript's `Date`.

export const DAY = 24 * 60 * 60 * 1000;

const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;
const FIRST_YEAR = 1970;
const LAST_YEAR = 10_020;

const YEAR_STARTS: number[] = [0];
for (let year = FIRST_YEAR; year < LAST_YEAR; year++)
  YEAR_STARTS.push((YEAR_STARTS.at(-1) as number) + (isLeap(year) ? 366 : 365));

export interface ModelDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly msOfDay: number;
}

function isLeap(year: number): boolean {
  if (year % 400 === 0) return true;
  return year % 4 === 0 && year % 100 !== 0;
}

export function daysOf(year: number, month: number): number {
  return month === 2 && isLeap(year) ? 29 : (MONTH_LENGTHS[month - 1] as number);
}

export function dateOf(instant: number): ModelDate {
  let days = Math.floor(instant / DAY);
  const msOfDay = instant - days * DAY;
  let year = FIRST_YEAR + Math.floor(days / 366);
  while ((YEAR_STARTS[year + 1 - FIRST_YEAR] as number) <= days) year += 1;
  days -= YEAR_STARTS[year - FIRST_YEAR] as number;
  let month = 1;
  while (days >= daysOf(year, month)) {
    days -= daysOf(year, month);
    month += 1;
  }
  return { year, month, day: days + 1, msOfDay };
}

export function instantOfDate({ year, month, day, msOfDay }: ModelDate): number {
  let days = YEAR_STARTS[year - FIRST_YEAR] as number;
  for (let before = 1; before < month; before++) days += daysOf(year, before);
  return (days + day - 1) * DAY + msOfDay;
}

/** Keeps the day of the month, or returns the last day of a month that is too short. */
export function monthsAfter(instant: number, count: number): number {
  const date = dateOf(instant);
  let { year, month } = date;
  for (let left = count; left > 0; left--) {
    month = month === 12 ? 1 : month + 1;
    if (month === 1) year += 1;
  }
  return instantOfDate({ ...date, year, month, day: Math.min(date.day, daysOf(year, month)) });
}

export function nextDay(instant: number, day: number, msOfDay: number, month: number | null = null): number {
  let { year, month: each } = dateOf(instant);
  for (;;) {
    const isThere = day <= daysOf(year, each) && (month === null || month === each);
    const at = isThere ? instantOfDate({ year, month: each, day, msOfDay }) : 0;
    if (at > instant) return at;
    each = each === 12 ? 1 : each + 1;
    if (each === 1) year += 1;
  }
}
