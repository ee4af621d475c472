// The test clock of a ledger that was created for tests. A test clock stands still until a request moves it, and never
// goes back.

import { DAY_MS, type Instant, LAST_INSTANT } from '../ledger/instant.ts';

export type TestClockMove = { readonly days: number } | { readonly to: Instant };

export interface TestClock {
  now(): Promise<Instant>;
  /**
   * Moves the clock. Resolves with the new instant once it is on stable storage. Every later read or write uses the new
   * instant. If the new instant is before the current instant or after `LAST_INSTANT`, resolves with null and does not
   * move the clock.
   *
   * @throws StoreFault
   */
  move(move: TestClockMove): Promise<Instant | null>;
}

/** The instant to which a test clock moves; null if it is before `now` or after `LAST_INSTANT`. */
export function movedTo(now: Instant, move: TestClockMove): Instant | null {
  const to = 'to' in move ? move.to : now + move.days * DAY_MS;
  return to >= now && to <= LAST_INSTANT ? to : null;
}

/**
 * Checks that a ledger has a test clock if the operator wants one, and has none otherwise.
 *
 * @param wanted whether the operator passed --test-clock
 * @returns one sentence that says what is wrong and what to do; null if nothing is wrong
 */
export function testClockRefusal(name: string, hasTestClock: boolean, wanted: boolean): string | null {
  if (hasTestClock === wanted) return null;
  return wanted
    ? `${name} was created without a test clock, so its credits may be real; point DATABASE_URL at a new ledger, or omit --test-clock.`
    : `${name} was created with a test clock, so its time is not real; add --test-clock, or point DATABASE_URL at another ledger.`;
}
