// Time as the ledger knows it: milliseconds since 1970 in UTC, and whole days of exactly 24 hours. Reading a clock is
// the stores' work; here an instant always comes in as an argument.

/** Milliseconds since 1970-01-01T00:00:00Z, an integer from 0 to `INSTANT_MAX`. */
export type Instant = number;

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** 9999-12-31T23:59:59.999Z, the last instant that ISO 8601 writes with four digits of year. A later end is stored as this one. */
export const INSTANT_MAX: Instant = 253_402_300_799_999;

/** The latest that a clock may say: what starts then still has an end after it. */
export const LAST_INSTANT: Instant = INSTANT_MAX - 1;

export const VALIDITY_DAYS_DEFAULT = 31;

/** From any start since 1970, this many days reach past `INSTANT_MAX`: more days than this mean the same as this. */
export const VALIDITY_DAYS_MAX = Math.ceil(INSTANT_MAX / DAY_MS);

export function isInstant(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= INSTANT_MAX;
}
