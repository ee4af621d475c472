// Estimates how many commands the store writes per millisecond while the queue is long: that says how long another command
// would be queued. Unknown while the queue is short, and while the store writes nothing.

/** Longer than most batches take, since all commands of a batch are done at once. */
export const WINDOW_MS = 250;
/** Weight of the latest window. */
const LATEST = 1 / 2;

export class ThroughputEstimate {
  /** Commands per millisecond; null while unknown. */
  perMs: number | null = null;
  #sinceMs: number | null = null;
  #commands = 0;

  /** A batch is done, and others are queued. */
  note(commands: number, nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const tookMs = nowMs - this.#sinceMs;
    if (tookMs >= WINDOW_MS) {
      const latest = this.#commands / tookMs;
      this.perMs = this.perMs === null ? latest : LATEST * latest + (1 - LATEST) * this.perMs;
      this.#sinceMs = nowMs;
      this.#commands = 0;
    }
    this.#commands += commands;
  }

  /** The queue is short again. */
  forget(): void {
    this.#sinceMs = null;
    this.#commands = 0;
    this.perMs = null;
  }
}
