// Runs background work at an interval, one round at a time. After a failed round, the next tick tries again.

import type { QuietPauses } from './quiet-pauses.ts';

const TICK_MS = 1_000;

export class IntervalJob {
  readonly #work: (stopping: AbortSignal) => Promise<void>;
  readonly #onTrouble: (error: unknown) => void;
  readonly #tickMs: number;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** When the latest round began, from `performance.now`. */
  #latestMs = Number.NEGATIVE_INFINITY;
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

  /** @param pauses decides which ticks run a round; null to run a round at every tick */
  start(pauses: QuietPauses | null = null): void {
    this.#timer = setInterval(() => {
      if (pauses === null || pauses.isDue(this.#latestMs)) void this.tick();
    }, this.#tickMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#round;
  }

  tick(): Promise<void> {
    if (this.#round === null) this.#latestMs = performance.now();
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
