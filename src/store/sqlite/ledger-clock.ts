// The ledger's time: the machine's clock, but never earlier than what any thread of this process has seen, so that a
// clock that jumps back revives nothing. The latest instant is shared memory between the writer's thread and the
// readers'; the writer also keeps it in the file.

import { type Instant, LAST_INSTANT } from '../../ledger/instant.ts';

/** The machine's clock: milliseconds since 1970. */
export type WallClock = () => number;

export class LedgerClock {
  /** One BigInt64, to be handed to the other thread. */
  readonly shared: SharedArrayBuffer;
  readonly #latest: BigInt64Array;
  readonly #wall: WallClock;

  constructor(wall: WallClock, shared = new SharedArrayBuffer(8)) {
    this.shared = shared;
    this.#latest = new BigInt64Array(shared);
    this.#wall = wall;
  }

  /** The instant of what is being done now. */
  now(): Instant {
    return this.notBefore(Math.floor(this.#wall()));
  }

  /** As `now`, but nobody acts on it: looking whether something is due leaves no trace. */
  peek(): Instant {
    return Math.min(Math.max(Math.floor(this.#wall()), this.latest()), LAST_INSTANT);
  }

  latest(): Instant {
    return Number(Atomics.load(this.#latest, 0));
  }

  /** Moves the clock up to `instant`, unless it is there already. */
  notBefore(instant: Instant): Instant {
    const wanted = BigInt(Math.min(instant, LAST_INSTANT));
    for (;;) {
      const seen = Atomics.load(this.#latest, 0);
      if (seen >= wanted) return Number(seen);
      if (Atomics.compareExchange(this.#latest, 0, seen, wanted) === seen) return Number(wanted);
    }
  }
}
