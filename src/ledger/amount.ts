// Credits are whole numbers. Everything that holds them stays within what a JavaScript number and a JSON reader hold exactly.

/** Credits: an integer from 1 to `AMOUNT_MAX` in a command; from 0 where something may be used up. */
export type Amount = number;

/** 2^53−1, the largest integer that survives a JSON reader; also the most that one end user may hold. */
export const AMOUNT_MAX: Amount = Number.MAX_SAFE_INTEGER;

export function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}
