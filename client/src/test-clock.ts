// Reads and moves the test clock of a ledger that was created with `scrip serve --test-clock`.

import { type Call, type Connection, exchange } from './exchange.ts';
import type { TestClock } from './generated.ts';
import type { Instant } from './queries.ts';

/** How to move the clock: forward by 24-hour days, or to an instant. */
export type TestClockMove = { readonly days: number } | { readonly to: Instant };

export interface TestClockOptions {
  /** Aborts the call. The call's promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const PATH = '/test-clock';
const DAY_MS = 86_400_000;

export class ScripTestClock {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Returns the ledger's time. This time stands still until you move the clock.
   *
   * @throws {NotFound} if the ledger has no test clock
   */
  now({ signal }: TestClockOptions = {}): Promise<Date> {
    return this.#send({ method: 'GET', path: PATH, signal });
  }

  /**
   * Moves the ledger's time forward, and returns the new time. The client converts `days` to an instant before it sends
   * the request, so that a retry never moves the clock twice.
   *
   * @throws {InvalidField} if the instant is before the ledger's time, or not before 9999-12-31T23:59:59.999Z
   * @throws {TypeError} if `days` is not an integer of at least 1, or is too large for a `Date`
   * @throws {NotFound} if the ledger has no test clock
   */
  async advance(move: TestClockMove, options: TestClockOptions = {}): Promise<Date> {
    const to = 'to' in move ? move.to : daysAfter(await this.now(options), move.days);
    return this.#send({ method: 'POST', path: PATH, body: { to }, signal: options.signal });
  }

  async #send(call: Call): Promise<Date> {
    const { now } = await exchange<TestClock>(this.#connection, call);
    return new Date(now);
  }
}

function daysAfter(now: Date, days: number): Date {
  const to = new Date(now.getTime() + days * DAY_MS);
  if (Number.isSafeInteger(days) && days >= 1 && !Number.isNaN(to.getTime())) return to;
  throw new TypeError('days must be an integer of at least 1, and must not move the clock past the year 9999.');
}
