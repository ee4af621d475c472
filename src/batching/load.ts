// Measures whether this process is busy. Background work slows down while the process is busy, so that requests are
// not delayed.

import { type EventLoopUtilization, performance } from 'node:perf_hooks';

/** Above this load, a process counts as busy, because its requests already wait for each other. */
const BUSY = 0.65;
/**
 * If batches contain at least this many requests on average, requests wait for the store, and a load above
 * `BUSY_WITH_LARGE_BATCHES` already counts as busy. At a lower load, large batches only show that each COMMIT takes
 * a long time, and the process is not busy.
 */
const LARGE_BATCH = 16;
const BUSY_WITH_LARGE_BATCHES = 0.3;
/** The weight of the latest batch in the average batch size. */
const LATEST = 1 / 8;
const SAMPLE_MS = 200;
/** With this factor per sample, the measured load falls from 1 to `BUSY` in about a second. */
const DECAY = 0.92;
/**
 * If no sample has been taken for this long, the load is unknown, and counts as `UNKNOWN` until the next sample. If no
 * batch has finished for this long, the average size of batches is ignored.
 */
const STALE_MS = 1_000;
const UNKNOWN = 0.7;

/** Measures the share of recent time in which the event loop was busy, and the average size of recent batches. */
export class LoadMeter {
  readonly #utilization: typeof performance.eventLoopUtilization;
  #sampledAtMs = performance.now();
  #loop: EventLoopUtilization;
  #load = 0;
  #batchSize = 0;
  #batchAtMs = Number.NEGATIVE_INFINITY;

  /** @param utilization replaced in tests */
  constructor(utilization = performance.eventLoopUtilization) {
    this.#utilization = utilization;
    this.#loop = utilization();
  }

  /** @param requests the number of requests in a finished batch */
  noteBatch(requests: number, nowMs: number): void {
    this.#batchSize += LATEST * (requests - this.#batchSize);
    this.#batchAtMs = nowMs;
  }

  /**
   * Also returns true while the load is unknown, so that background work does not delay the first requests after a
   * quiet phase.
   */
  isBusy(): boolean {
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#sampledAtMs;
    if (elapsedMs >= SAMPLE_MS) this.#sample();
    if (elapsedMs >= STALE_MS) this.#load = UNKNOWN;
    const hasLargeBatches = this.#batchSize >= LARGE_BATCH && nowMs - this.#batchAtMs < STALE_MS;
    return this.#load > (hasLargeBatches ? BUSY_WITH_LARGE_BATCHES : BUSY);
  }

  #sample(): void {
    const { utilization } = this.#utilization(this.#loop);
    // The measured load falls slowly. Otherwise, the process would seem idle as soon as background work pauses.
    this.#load = Math.max(utilization, this.#load * DECAY);
    this.#loop = this.#utilization();
    this.#sampledAtMs = performance.now();
  }
}

/** The load of this process. */
export const LOAD = new LoadMeter();
