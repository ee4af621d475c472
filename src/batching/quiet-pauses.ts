// Lets background jobs look for work less often while this process writes nothing. Used for stores in which looking for
// work is expensive. After a batch, the jobs of this process look for work at their usual interval for a while, so they
// soon find work that the batch created. Other work, such as renewals and work that a killed process left behind, is
// found at the end of a pause.

/**
 * For this long after a batch, jobs look for work at their usual interval, because one job can create work for another.
 */
const ACTIVE_MS = 3_000;

export class QuietPauses {
  readonly #pauseMs: number;
  readonly #batches: () => number;
  #seen = 0;
  /** The `performance.now()` time at which the number of batches last changed. */
  #activeAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param pauseMs how often a job looks for work while this process writes nothing
   * @param batches how many batches this process has written so far
   */
  constructor(pauseMs: number, batches: () => number) {
    this.#pauseMs = pauseMs;
    this.#batches = batches;
  }

  /**
   * Whether a job should look for work now.
   *
   * @param latestMs the `performance.now()` time at which the job last looked
   */
  isDue(latestMs: number): boolean {
    const now = performance.now();
    const batches = this.#batches();
    if (batches !== this.#seen) this.#activeAtMs = now;
    this.#seen = batches;
    return now - this.#activeAtMs <= ACTIVE_MS || now - latestMs >= this.#pauseMs;
  }
}
