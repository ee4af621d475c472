// Authenticates requests by the `Authorization: Bearer <API key>` header. The result of a lookup is valid for half a
// second, so a revoked key stops working within a second in every process. A background job stores when each key was
// last used, at most once a minute per key.

import { type ApiKey, hashOf, isWellFormed } from '../../accounts/api-key.ts';
import { IntervalJob } from '../../batching/interval-job.ts';
import type { Actor } from '../../ledger/posting.ts';
import type { KeyStore } from '../../store/key-store.ts';

export const FRESH_MS = 500;

/** Maximum number of cached keys. */
export const REMEMBERED_MAX = 10_000;

const USE_MS = 60_000;

/**
 * Does not match if a request has two `Authorization` headers, because Node.js joins their values with a comma and a
 * space.
 */
const BEARER = /^bearer +(\S+) *$/i;

export interface Caller extends ApiKey {
  readonly actor: Actor;
}

interface KnownKey {
  readonly key: Caller;
  readonly checkedAtMs: number;
}

/** The latest valid key of a connection. If the next request has the same header, the key is not hashed again. */
export interface LatestKey {
  authorization: string;
  hash: string;
  /** 0 until the connection has sent a valid key. */
  account: number;
}

interface LookUp {
  readonly startedMs: number;
  readonly caller: Promise<Caller | null>;
}

export class Authenticator {
  readonly #apiKeys: KeyStore;
  readonly #known = new Map<string, KnownKey>();
  /** Lookups in progress, by the hash of the key. Requests with the same key share a lookup. */
  readonly #lookUps = new Map<string, LookUp>();
  /** For each key ID, the approximate time (`performance.now`) at which the key was last added to `#used`. */
  readonly #notedAtMs = new Map<number, number>();
  readonly #used = new Set<number>();
  readonly #storing = new IntervalJob(
    () => this.#storeUses(),
    () => {},
  );

  constructor(apiKeys: KeyStore) {
    this.#apiKeys = apiKeys;
  }

  start(): void {
    this.#storing.start();
  }

  /** Stops the background job, and stores the remaining uses. */
  async stop(): Promise<void> {
    await this.#storing.stop();
    await this.#storeUses();
  }

  /**
   * Returns the key of a request, or a promise of the key if it is not cached. Returns null, or a promise of null, if
   * the key is missing, malformed, unknown or revoked: an attacker must not be able to tell these cases apart.
   *
   * @param latest the latest valid key of the same connection; updated if the key of the request is cached
   * @throws StoreFault (rejects) if the lookup fails
   */
  authenticate(authorization: string | undefined, latest: LatestKey): Caller | null | Promise<Caller | null> {
    if (authorization === undefined) return null;
    const hash = authorization === latest.authorization ? latest.hash : secretHashOf(authorization);
    if (hash === null) return null;
    const nowMs = performance.now();
    const known = this.#known.get(hash);
    if (known === undefined || nowMs - known.checkedAtMs >= FRESH_MS) return this.#lookUp(hash, nowMs);
    latest.authorization = authorization;
    latest.hash = hash;
    latest.account = known.key.account;
    return this.#noted(known);
  }

  /**
   * Requests with the same key share a lookup. If a lookup has taken at least `FRESH_MS`, the next request starts a new
   * lookup.
   */
  #lookUp(hash: string, nowMs: number): Promise<Caller | null> {
    const underWay = this.#lookUps.get(hash);
    if (underWay !== undefined && nowMs - underWay.startedMs < FRESH_MS) return underWay.caller;
    const caller = this.#find(hash, nowMs).finally(() => {
      if (this.#lookUps.get(hash) === lookUp) this.#lookUps.delete(hash);
    });
    const lookUp: LookUp = { startedMs: nowMs, caller };
    this.#lookUps.set(hash, lookUp);
    return caller;
  }

  async #find(hash: string, checkedAtMs: number): Promise<Caller | null> {
    const found = await this.#apiKeys.find(hash);
    this.#known.delete(hash);
    if (found === null) return null;
    const known = { key: { ...found, actor: `key:${found.id}` as const }, checkedAtMs };
    if (this.#known.size >= REMEMBERED_MAX) this.#known.delete(this.#known.keys().next().value as string);
    this.#known.set(hash, known);
    return this.#noted(known);
  }

  #noted({ key, checkedAtMs }: KnownKey): Caller {
    const notedAtMs = this.#notedAtMs.get(key.id);
    if (notedAtMs !== undefined && checkedAtMs - notedAtMs < USE_MS) return key;
    if (this.#notedAtMs.size >= REMEMBERED_MAX) this.#notedAtMs.clear();
    this.#notedAtMs.set(key.id, checkedAtMs);
    this.#used.add(key.id);
    return key;
  }

  /** If storing the uses fails, they are dropped, and the next use of each of these keys is stored instead. */
  async #storeUses(): Promise<void> {
    if (this.#used.size === 0) return;
    const ids = [...this.#used];
    this.#used.clear();
    try {
      await this.#apiKeys.recordUses(ids);
    } catch {
      // Ignore the error: the time of the last use is only for display.
      for (const id of ids) this.#notedAtMs.delete(id);
    }
  }
}

/** The hash of the key in the header; null if the header is malformed. */
function secretHashOf(authorization: string): string | null {
  const secret = BEARER.exec(authorization)?.[1];
  return secret !== undefined && isWellFormed(secret) ? hashOf(secret) : null;
}
