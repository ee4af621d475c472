// Measures whether this process is busy. Background work slows down while the process is busy, so that requests are
// not delayed.

import { performance } from 'node:perf_hooks';

/** Above this load, a process counts as busy, because its requests already wait for each other. */
const BUSY = 0.65;
const SAMPLE_MS = 200;
/** With this factor per sample, the measured load falls from 1 to `BUSY` in about a second. */
const DECAY = 0.92;
/** After this time without a sample, the load is unknown, and counts as `UNKNOWN` until the next sample. */
const STALE_MS = 1_000;
const UNKNOWN = 0.7;

/** Measures the share of recent time in which the event loop was busy. */
export class LoadMeter {
  #sampledAtMs = performance.now();
  #loop = performance.eventLoopUtilization();
  #load = 0;

  /**
   * Also returns true while the load is unknown, so that background work does not delay the first requests after a
   * quiet phase.
   */
  isBusy(): boolean {
    const elapsedMs = performance.now() - this.#sampledAtMs;
    if (elapsedMs >= SAMPLE_MS) this.#sample();
    if (elapsedMs >= STALE_MS) this.#load = UNKNOWN;
    return this.#load > BUSY;
  }

  #sample(): void {
    const { utilization } = performance.eventLoopUtilization(this.#loop);
    // The measured load falls slowly. Otherwise, the process would seem idle as soon as background work pauses.
    this.#load = Math.max(utilization, this.#load * DECAY);
    this.#loop = performance.eventLoopUtilization();
    this.#sampledAtMs = performance.now();
  }
}

/** The load of this process. */
export const LOAD = new LoadMeter();
