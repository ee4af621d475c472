// Background work, once a second: one round at a time. A round that fails is repeated by the next tick.

const TICK_MS = 1_000;

export class IntervalJob {
  readonly #work: (stopping: AbortSignal) => Promise<void>;
  readonly #onTrouble: (error: unknown) => void;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;
  #hasTrouble = false;

  /**
   * @param work one round; ends early when `stopping` is aborted
   * @param onTrouble called for a round that fails if the one before did not: a store that is down fails one each second
   */
  constructor(work: (stopping: AbortSignal) => Promise<void>, onTrouble: (error: unknown) => void) {
    this.#work = work;
    this.#onTrouble = onTrouble;
  }

  start(): void {
    this.#timer = setInterval(() => void this.tick(), TICK_MS);
  }

  /** Waits for the round that is running. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#round;
  }

  /** Runs a round, or joins the one that is running. */
  tick(): Promise<void> {
    this.#round ??= this.#work(this.#stopping.signal)
      .then(
        () => {
          this.#hasTrouble = false;
        },
        (error) => {
          if (!this.#hasTrouble) this.#onTrouble(error);
          this.#hasTrouble = true;
        },
      )
      .finally(() => {
        this.#round = null;
      });
    return this.#round;
  }
}
