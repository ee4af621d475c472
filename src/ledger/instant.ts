// Time in the ledger, with days of exactly 24 hours. The ledger gets every instant as an argument; only the stores read
// a clock.

/** Milliseconds since 1970-01-01T00:00:00Z, an integer from 0 to `INSTANT_MAX`. */
export type Instant = number;

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/**
 * 9999-12-31T23:59:59.999Z: the last instant that ISO 8601 writes with a four-digit year. A cycle that would end later
 * ends at this instant.
 */
export const INSTANT_MAX: Instant = 253_402_300_799_999;

/** The latest instant that a clock is allowed to return. Even a cycle that starts at this instant can end later. */
export const LAST_INSTANT: Instant = INSTANT_MAX - 1;

export const VALIDITY_DAYS_DEFAULT = 31;

/**
 * From any start, a validity of this many days reaches `INSTANT_MAX`, so a longer validity would make no difference.
 */
export const VALIDITY_DAYS_MAX = Math.ceil(INSTANT_MAX / DAY_MS);

export function isInstant(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= INSTANT_MAX;
}

/** The maximum number of months that `addMonths` can add to `from` without passing `to`. */
export function monthsBetween(from: Instant, to: Instant): number {
  const [first, last] = [new Date(from), new Date(to)];
  const years = last.getUTCFullYear() - first.getUTCFullYear();
  const months = 12 * years + last.getUTCMonth() - first.getUTCMonth();
  return addMonths(from, months) <= to ? months : months - 1;
}

/** Adds calendar months, in UTC. The day is clamped to the last day of the month: one month after 31 May is 30 June. */
export function addMonths(at: Instant, months: number): Instant {
  const date = new Date(at);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months, 1);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  return date.setUTCDate(Math.min(day, lastDay));
}
