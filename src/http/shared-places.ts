// How many requests of each account are worked on at once while accounts share the server. Batches and turns of the event
// loop are as long as there is work in them, so whoever brings little waits for what the others bring: those who bring
// much together have no more places than those who bring little use, and make nobody's wait much longer than they do
// themselves. Who is alone, or only beside others who bring much, has many.

/** Places of all accounts together while all of them bring much, half for each of two. */
export const SHARED_PLACES = 256;
/** However many accounts there are. */
export const SHARED_PLACES_MIN = 16;
/** Accounts share the server for so long after two of them asked for something. */
export const SHARED_MS = 5_000;
/** Of an account that never has more under way at once, others wait little: it is a quiet one. */
export const QUIET_MAX = 32;
/**
 * Of those who are not quiet, together, beside somebody who is. Beside 64 connections a quiet one's 99th percentile was
 * 24.6 ms with 128 places, 7.1 ms with 16, 4.1 ms with 8 and 2.8 ms with 4, which halve what is done for the others.
 */
export const BESIDE_QUIET_PLACES = 8;
/** Of each of them. */
const BESIDE_QUIET_PLACES_MIN = 2;

/** How often it is looked at who is there. */
const LOOK_EVERY_MS = 100;
/** What part of the most that an account has had at once is forgotten at each look. */
const FORGOTTEN = 1 / 16;

interface Usage {
  askedAtMs: number;
  /** When it had more under way than a quiet one. */
  loudAtMs: number;
  /** Requests at once since the latest look, and of late. */
  latest: number;
  most: number;
}

export class SharedPlaces {
  readonly #usages = new Map<number, Usage>();
  #lookedAtMs = 0;
  /** Of the latest look. */
  #loud = 0;
  #quietAccounts = 0;
  #quietRequests = 0;

  /** Whether more than one account is there. */
  get isShared(): boolean {
    return this.#usages.size > 1;
  }

  /**
   * To be called for each request whose account is known.
   *
   * @param atOnce what the account has under way, what waits included
   */
  ask(account: number, atOnce: number, nowMs: number): void {
    const usage = this.#usages.get(account) ?? this.#come(account);
    usage.askedAtMs = nowMs;
    if (atOnce > usage.latest) usage.latest = atOnce;
    if (atOnce > QUIET_MAX) {
      if (!this.#isLoud(usage)) this.#getLoud(usage);
      usage.loudAtMs = nowMs;
    }
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) this.#look(nowMs);
  }

  /** How many requests of the account may be worked on at once; all, where it is alone. */
  of(account: number): number {
    if (!this.isShared) return Number.POSITIVE_INFINITY;
    const usage = this.#usages.get(account);
    const isLoud = usage !== undefined && this.#isLoud(usage);
    if (isLoud && this.#quietAccounts > 0) {
      const together = Math.max(BESIDE_QUIET_PLACES, this.#quietRequests);
      return Math.max(BESIDE_QUIET_PLACES_MIN, Math.floor(together / this.#loud));
    }
    return Math.max(SHARED_PLACES_MIN, Math.floor(SHARED_PLACES / Math.max(2, this.#loud)));
  }

  #isLoud({ loudAtMs }: Usage): boolean {
    return this.#lookedAtMs - loudAtMs < SHARED_MS;
  }

  /** Who comes or gets loud is known at once, not from the next look. */
  #come(account: number): Usage {
    const usage = { askedAtMs: 0, loudAtMs: Number.NEGATIVE_INFINITY, latest: 1, most: 1 };
    this.#usages.set(account, usage);
    this.#quietAccounts += 1;
    this.#quietRequests += usage.most;
    return usage;
  }

  #getLoud({ most }: Usage): void {
    this.#loud += 1;
    this.#quietAccounts -= 1;
    this.#quietRequests -= most;
  }

  #look(nowMs: number): void {
    this.#lookedAtMs = nowMs;
    this.#loud = 0;
    this.#quietAccounts = 0;
    this.#quietRequests = 0;
    for (const [account, usage] of this.#usages) {
      usage.most = Math.max(usage.latest, usage.most * (1 - FORGOTTEN));
      usage.latest = 0;
      if (nowMs - usage.askedAtMs >= SHARED_MS) {
        this.#usages.delete(account);
      } else if (this.#isLoud(usage)) {
        this.#loud += 1;
      } else {
        this.#quietAccounts += 1;
        // Of one that was loud more is remembered than a quiet one may have.
        usage.most = Math.min(usage.most, QUIET_MAX);
        this.#quietRequests += usage.most;
      }
    }
  }
}
