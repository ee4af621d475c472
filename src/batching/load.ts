// Measures whether this process is busy. Background work slows down while the process is busy, so that requests are
// not delayed.

import { type EventLoopUtilization, performance } from 'node:perf_hooks';

/** Above this load, a process counts as busy, because its requests already wait for each other. */
const BUSY = 0.65;
/**
 * If at least this many requests wait for the store on average, a load above `BUSY_WITH_MANY_WAITING` already counts as
 * busy. At a lower load, many waiting requests only show that each COMMIT takes a long time, and the process is not
 * busy.
 */
const MANY_WAITING = 12;
const BUSY_WITH_MANY_WAITING = 0.3;
/** The weight of the latest number in the average number of waiting requests. */
const LATEST = 1 / 8;
const SAMPLE_MS = 200;
/** With this factor per sample, the measured load falls from 1 to `BUSY` in about a second. */
const DECAY = 0.92;
/**
 * If no sample has been taken for this long, the load is unknown, and counts as `UNKNOWN` until the next sample. If no
 * batch has finished for this long, the number of waiting requests is ignored.
 */
const STALE_MS = 1_000;
const UNKNOWN = 0.7;

/** Measures the share of recent time in which the event loop was busy, and how many requests wait. */
export class LoadMeter {
  readonly #utilization: typeof performance.eventLoopUtilization;
  #sampledAtMs = performance.now();
  #loop: EventLoopUtilization;
  #load = 0;
  #waiting = 0;
  #notedAtMs = Number.NEGATIVE_INFINITY;

  /** @param utilization replaced in tests */
  constructor(utilization = performance.eventLoopUtilization) {
    this.#utilization = utilization;
    this.#loop = utilization();
  }

  /** @param requests the number of requests that are queued or in flight when a batch finishes, including that batch */
  noteWaiting(requests: number, nowMs: number): void {
    this.#waiting += LATEST * (requests - this.#waiting);
    this.#notedAtMs = nowMs;
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
    const areManyWaiting = this.#waiting >= MANY_WAITING && nowMs - this.#notedAtMs < STALE_MS;
    return this.#load > (areManyWaiting ? BUSY_WITH_MANY_WAITING : BUSY);
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
