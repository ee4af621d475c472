// Work that is looked for once a second, in the background: one round at a time, and a round that fails is taken up by
// the next tick.

const TICK_MS = 1_000;

export class IntervalJob {
  readonly #work: () => Promise<void>;
  readonly #onTrouble: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;
  #isTroubled = false;

  /** @param onTrouble told of a round that fails when the one before did not: a store that is away fails one a second */
  constructor(work: () => Promise<void>, onTrouble: (error: unknown) => void) {
    this.#work = work;
    this.#onTrouble = onTrouble;
  }

  start(): void {
    this.#timer = setInterval(() => void this.tick(), TICK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#round;
  }

  /** A tick during a round joins it. */
  tick(): Promise<void> {
    this.#round ??= this.#work()
      .then(
        () => {
          this.#isTroubled = false;
        },
        (error) => {
          if (!this.#isTroubled) this.#onTrouble(error);
          this.#isTroubled = true;
        },
      )
      .finally(() => {
        this.#round = null;
      });
    return this.#round;
  }
}
