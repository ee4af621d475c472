// Estimates how many commands the store writes per millisecond. Scrip uses this estimate to limit the number of
// requests in flight.

/** Throughput is measured over windows of at least this length. A window usually contains several batches. */
export const WINDOW_MS = 250;
const LATEST = 1 / 2;

export class ThroughputEstimate {
  /** Commands per millisecond; null while unknown. */
  perMs: number | null = null;
  #sinceMs: number | null = null;
  #commands = 0;

  /** Call this only while the queue is long enough that the store, and not the clients, limits the throughput. */
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

  /** Call this when the queue is too short for measuring the store's throughput. */
  forget(): void {
    this.#sinceMs = null;
    this.#commands = 0;
    this.perMs = null;
  }
}
