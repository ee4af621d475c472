// How often an API key may call, where that is limited: a bucket of places for each key, which fills again at an even
// rate. What is kept of a key is one number, the moment at which its bucket is full again; once that has passed there is
// nothing to remember.

import assert from 'node:assert/strict';

export interface RateLimitSettings {
  /** Requests a second of one key, in the long run. */
  readonly perSecond: number;
  /** How many may come at once, after a time without any. */
  readonly burst: number;
}

/** Where a key stands after a request. */
export interface Standing {
  /** Seconds until another request is let in; null when this one was. */
  readonly retryAfterSeconds: number | null;
  /** Requests that would be let in now. */
  readonly remaining: number;
  /** Seconds until `remaining` is the whole burst again, or until it is no longer 0. */
  readonly resetSeconds: number;
}

/** Keys that are not back to a full bucket, remembered at once: beyond it the longest known start with a full one. */
export const LIMITED_KEYS_MAX = 10_000;

/** What adding fractions of milliseconds may lose. */
const LOST_MS = 1e-6;

export class RateLimit {
  readonly settings: RateLimitSettings;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  /** By key, when its bucket is full again. */
  readonly #fullAt = new Map<number, number>();
  #sweepAt = 1_000;

  constructor(settings: RateLimitSettings) {
    const { perSecond, burst } = settings;
    assert(burst >= perSecond, 'what may come in a second may come at once');
    this.settings = settings;
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = burst * this.#intervalMs;
  }

  /** How many keys are remembered. */
  get remembered(): number {
    return this.#fullAt.size;
  }

  /**
   * Counts a request, unless the key has none left: then it costs nothing, and trying in vain makes nothing worse.
   *
   * @param now in milliseconds, by a clock that only goes forwards
   */
  take(key: number, now: number): Standing {
    const owedMs = Math.max(0, (this.#fullAt.get(key) ?? 0) - now);
    const isLetIn = owedMs + this.#intervalMs <= this.#burstMs + LOST_MS;
    const afterMs = isLetIn ? owedMs + this.#intervalMs : owedMs;
    if (isLetIn) this.#remember(key, now + afterMs, now);
    const remaining = Math.max(0, Math.floor((this.#burstMs - afterMs + LOST_MS) / this.#intervalMs));
    const waitMs = remaining > 0 ? afterMs : afterMs + this.#intervalMs - this.#burstMs;
    const resetSeconds = Math.max(1, Math.ceil((waitMs - LOST_MS) / 1_000));
    return { retryAfterSeconds: isLetIn ? null : resetSeconds, remaining, resetSeconds };
  }

  #remember(key: number, fullAt: number, now: number): void {
    this.#fullAt.set(key, fullAt);
    if (this.#fullAt.size < this.#sweepAt) return;
    for (const [one, at] of this.#fullAt) if (at <= now) this.#fullAt.delete(one);
    for (const one of this.#fullAt.keys()) {
      if (this.#fullAt.size <= LIMITED_KEYS_MAX) break;
      this.#fullAt.delete(one);
    }
    // Not again before as many have come as were looked at: a request pays for one step of the sweep.
    this.#sweepAt = Math.min(Math.max(1_000, 2 * this.#fullAt.size), LIMITED_KEYS_MAX + 1_000);
  }
}
