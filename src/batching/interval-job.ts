// Runs background work at an interval, one run at a time. After a failed run, the next tick tries again.

import type { QuietPauses } from './quiet-pauses.ts';

const TICK_MS = 1_000;

export class IntervalJob {
  readonly #work: (stopping: AbortSignal) => Promise<void>;
  readonly #onTrouble: (error: unknown) => void;
  readonly #tickMs: number;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** When the latest run began, from `performance.now`. */
  #latestMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #hasTrouble = false;

  /**
   * @param work performs one run; it must end early when `stopping` is aborted
   * @param onTrouble called when a run fails, unless the previous run failed too
   */
  constructor(work: (stopping: AbortSignal) => Promise<void>, onTrouble: (error: unknown) => void, tickMs = TICK_MS) {
    this.#work = work;
    this.#onTrouble = onTrouble;
    this.#tickMs = tickMs;
  }

  /** @param pauses decides which ticks start a run; null to start a run at every tick */
  start(pauses: QuietPauses | null = null): void {
    this.#timer = setInterval(() => {
      if (pauses === null || pauses.isDue(this.#latestMs)) void this.tick();
    }, this.#tickMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#running;
  }

  tick(): Promise<void> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    this.#latestMs = performance.now();
    try {
      await this.#work(this.#stopping.signal);
      this.#hasTrouble = false;
    } catch (error) {
      if (!this.#hasTrouble) this.#onTrouble(error);
      this.#hasTrouble = true;
    } finally {
      this.#running = null;
    }
  }
}
