// Runs background work at an interval, one round at a time. After a failed round, the next tick tries again.

const TICK_MS = 1_000;

export class IntervalJob {
  readonly #work: (stopping: AbortSignal) => Promise<void>;
  readonly #onTrouble: (error: unknown) => void;
  readonly #tickMs: number;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;
  #hasTrouble = false;

  /**
   * @param work runs one round; it must end early when `stopping` is aborted
   * @param onTrouble called when a round fails, unless the previous round failed too
   */
  constructor(work: (stopping: AbortSignal) => Promise<void>, onTrouble: (error: unknown) => void, tickMs = TICK_MS) {
    this.#work = work;
    this.#onTrouble = onTrouble;
    this.#tickMs = tickMs;
  }

  start(): void {
    this.#timer = setInterval(() => void this.tick(), this.#tickMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#round;
  }

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
