// Credits are whole numbers of at most 2^53−1, so that JavaScript and JSON parsers represent them exactly.

/** A whole number of credits: 1 to `AMOUNT_MAX` in a command, 0 to `AMOUNT_MAX` in a balance or a cycle. */
export type Amount = number;

/**
 * 2^53−1: up to this value, common JSON parsers read all integers without rounding. Also the maximum balance of an end
 * user, including the held credits.
 */
export const AMOUNT_MAX: Amount = Number.MAX_SAFE_INTEGER;

export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}
