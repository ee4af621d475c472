// Parses ISO 8601 date-times that have a time zone.

import { INSTANT_MAX, type Instant } from './instant.ts';

/** The seconds are optional. The time zone offset is at most 23:59. */
const INSTANT =
  /^(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))$/;
const MINUTE_MS = 60_000;

/**
 * How to round an instant that is more precise than a millisecond: `down` for requests that read balances, `up` for
 * all other requests.
 */
export type Rounding = 'up' | 'down';

/**
 * @returns the instant, rounded to milliseconds and clamped to 0 … `INSTANT_MAX`; null if the text is not a date-time
 */
export function instantIn(text: string, rounding: Rounding = 'up'): Instant | null {
  const instant = unclampedInstantIn(text, rounding);
  return instant === null ? null : Math.min(Math.max(instant, 0), INSTANT_MAX);
}

/** @returns milliseconds since 1970, negative before 1970; null if the text is not a date-time */
export function unclampedInstantIn(text: string, rounding: Rounding = 'up'): number | null {
  const parts = INSTANT.exec(text);
  if (parts === null) return null;
  const [, minute = '', second = '00', fraction = '', sign, hours = '0', minutes = '0'] = parts;
  const local = Date.parse(`${minute}:${second}Z`);
  // Reject days that do not exist: `Date.parse` reads 31 June as 1 July.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, minute.length) !== minute) return null;
  const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === '-' ? -1 : 1);
  const exact = Number(fraction.padEnd(9, '0')) / 1e6;
  const milliseconds = rounding === 'up' ? Math.ceil(exact) : Math.floor(exact);
  return local + milliseconds - offset;
}
