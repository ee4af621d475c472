// How many commands the store does in a millisecond, while there are always more: what tells how long one more would wait.
// Of a store that does nothing at all, it tells nothing.

/** Longer than most batches take, since all of a batch are done at once. */
export const WINDOW_MS = 250;
/** What part of the pace is that of the latest window. */
const LATEST = 1 / 2;

export class ThroughputEstimate {
  #sinceMs: number | null = null;
  #done = 0;
  #perMs: number | null = null;

  /** Commands in a millisecond; null until it is known. */
  get perMs(): number | null {
    return this.#perMs;
  }

  /** So many are done at once, and others are left. */
  note(done: number, nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const tookMs = nowMs - this.#sinceMs;
    if (tookMs >= WINDOW_MS) {
      const latest = this.#done / tookMs;
      this.#perMs = this.#perMs === null ? latest : LATEST * latest + (1 - LATEST) * this.#perMs;
      this.#sinceMs = nowMs;
      this.#done = 0;
    }
    this.#done += done;
  }

  /** What comes next may be done at another pace. */
  forget(): void {
    this.#sinceMs = null;
    this.#done = 0;
    this.#perMs = null;
  }
}
