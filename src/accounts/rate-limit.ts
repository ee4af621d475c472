// Limits the requests of each API key with a token bucket. Uses the generic cell rate algorithm (GCRA): the only state
// of a bucket is the time at which it will be full again, so a full bucket needs no state.

import assert from 'node:assert/strict';

export interface RateLimitSettings {
  /** The average number of requests per second that each key is allowed. */
  readonly perSecond: number;
  /** Size of the bucket: the number of requests that a key can send at once after a pause. */
  readonly burst: number;
}

export interface BucketState {
  /** Seconds until the next request is allowed; null if this request was allowed. */
  readonly retryAfterSeconds: number | null;
  /** How many more requests would be allowed now. */
  readonly remaining: number;
  /** Seconds until the bucket is full or, if `remaining` is 0, until one request is allowed again. */
  readonly resetSeconds: number;
}

/**
 * Maximum number of buckets after a sweep. A sweep drops all full buckets. If more than this number remain, the sweep
 * also drops the oldest ones. A key whose bucket was dropped starts again with a full bucket.
 */
export const LIMITED_KEYS_MAX = 10_000;

/** Tolerance for rounding errors when fractional milliseconds are added. */
const ROUNDING_MS = 1e-6;

export class RateLimit {
  readonly settings: RateLimitSettings;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  /** For each key, the time at which its bucket will be full. */
  readonly #fullAt = new Map<number, number>();
  #sweepAt = 1_000;

  constructor(settings: RateLimitSettings) {
    const { perSecond, burst } = settings;
    assert(burst >= perSecond, 'the burst is at least the number of requests per second');
    this.settings = settings;
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = burst * this.#intervalMs;
  }

  get size(): number {
    return this.#fullAt.size;
  }

  /**
   * Takes a token from the key's bucket if one is left. A rejected request takes no token, so retrying does not extend
   * the wait.
   *
   * @param now in milliseconds, from a monotonic clock
   */
  take(key: number, now: number): BucketState {
    const owedMs = Math.max(0, (this.#fullAt.get(key) ?? 0) - now);
    const isAllowed = owedMs + this.#intervalMs <= this.#burstMs + ROUNDING_MS;
    const afterMs = isAllowed ? owedMs + this.#intervalMs : owedMs;
    if (isAllowed) this.#store(key, now + afterMs, now);
    const remaining = Math.max(0, Math.floor((this.#burstMs - afterMs + ROUNDING_MS) / this.#intervalMs));
    const waitMs = remaining > 0 ? afterMs : afterMs + this.#intervalMs - this.#burstMs;
    const resetSeconds = Math.max(1, Math.ceil((waitMs - ROUNDING_MS) / 1_000));
    return { retryAfterSeconds: isAllowed ? null : resetSeconds, remaining, resetSeconds };
  }

  #store(key: number, fullAt: number, now: number): void {
    this.#fullAt.set(key, fullAt);
    if (this.#fullAt.size < this.#sweepAt) return;
    for (const [known, at] of this.#fullAt) if (at <= now) this.#fullAt.delete(known);
    for (const oldest of this.#fullAt.keys()) {
      if (this.#fullAt.size <= LIMITED_KEYS_MAX) break;
      this.#fullAt.delete(oldest);
    }
    // Sweep again only after many keys have been added, so that the amortized cost per request is constant.
    this.#sweepAt = Math.min(Math.max(1_000, 2 * this.#fullAt.size), LIMITED_KEYS_MAX + 1_000);
  }
}
