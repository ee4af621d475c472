// Connections that are held and of which nobody knows yet whose they are, nor whether they bring one request or as many
// as fit into 64 KiB. One of them is let go in a turn of the event loop, and with each turn twice as many as before, as
// far as they bring no more than a turn has room for, to judge by those before them.

import { type Connection, REQUESTS_A_TURN_MAX } from './connection.ts';

/** Requests that they may bring in a turn, once it is known how many each of them brings. */
export const STRANGERS_TURN_MAX = 512;

export class Strangers {
  readonly #held: Connection[] = [];
  #isOldestNext = true;
  #letGo: readonly Connection[] = [];
  #expected = REQUESTS_A_TURN_MAX;

  get length(): number {
    return this.#held.length;
  }

  /** Requests that each of those taken last is expected to bring; at first the most is feared. */
  get expected(): number {
    return this.#expected;
  }

  push(connection: Connection): void {
    this.#held.push(connection);
  }

  /**
   * To be called once a turn. Who came first and who came last alternate, so that hundreds who come at once let somebody
   * else by.
   */
  take(max: number = STRANGERS_TURN_MAX): readonly Connection[] {
    const atOnce = Math.min(max, this.#learn());
    const taken: Connection[] = [];
    while (taken.length < atOnce && this.#held.length > 0) {
      taken.push((this.#isOldestNext ? this.#held.shift() : this.#held.pop()) as Connection);
      this.#isOldestNext = !this.#isOldestNext;
    }
    this.#letGo = taken;
    return taken;
  }

  /** @returns how many may be let go, from what those before them brought */
  #learn(): number {
    this.#expected = this.#letGo.length > 0 ? 1 : REQUESTS_A_TURN_MAX;
    for (const { hasBrought, brought } of this.#letGo)
      if (hasBrought) this.#expected = Math.max(this.#expected, brought);
    return Math.max(1, Math.min(2 * this.#letGo.length, Math.floor(STRANGERS_TURN_MAX / this.#expected)));
  }
}
