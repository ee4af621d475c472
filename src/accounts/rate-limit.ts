// Limits the requests of each API key with a token bucket. Uses the generic cell rate algorithm (GCRA): the only state
// of a bucket is the time at which it will be full again, so a full bucket needs no state.

import assert from 'node:assert/strict';

export interface RateLimitSettings {
  /** The average number of requests per second that each key is allowed. */
  readonly perSecond: number;
  /** Size of the bucket: the number of requests that a key can send at once after a pause. */
  readonly burst: number;
}

interface BucketState {
  /** Seconds until the next request is allowed; null if this request was allowed. */
  readonly retryAfterSeconds: number | null;
  /** How many more requests would be allowed now. */
  readonly remaining: number;
  /** Seconds until the bucket is full or, if `remaining` is 0, until one request is allowed again. */
  readonly resetSeconds: number;
}

/** Beyond this number, the bucket that was used least recently is dropped: its key starts again with a full bucket. */
export const LIMITED_KEYS_MAX = 10_000;

/** Tolerance for rounding errors when fractional milliseconds are added. */
const ROUNDING_MS = 1e-6;

export class RateLimit {
  readonly settings: RateLimitSettings;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  /** For each key, the time at which its bucket will be full. The key that was used least recently comes first. */
  readonly #fullAt = new Map<number, number>();

  constructor(settings: RateLimitSettings) {
    const { perSecond, burst } = settings;
    assert(burst >= perSecond, 'the burst is at least the number of requests per second');
    this.settings = settings;
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = burst * this.#intervalMs;
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
    if (isAllowed) this.#store(key, now + afterMs);
    const remaining = Math.max(0, Math.floor((this.#burstMs - afterMs + ROUNDING_MS) / this.#intervalMs));
    const waitMs = remaining > 0 ? afterMs : afterMs + this.#intervalMs - this.#burstMs;
    const resetSeconds = Math.max(1, Math.ceil((waitMs - ROUNDING_MS) / 1_000));
    return { retryAfterSeconds: isAllowed ? null : resetSeconds, remaining, resetSeconds };
  }

  #store(key: number, fullAt: number): void {
    this.#fullAt.delete(key);
    this.#fullAt.set(key, fullAt);
    if (this.#fullAt.size > LIMITED_KEYS_MAX) this.#fullAt.delete(this.#fullAt.keys().next().value as number);
  }
}
