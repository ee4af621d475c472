// Who is asking: `Authorization: Bearer <API key>` to the key that was given out. A key is looked up in the store when
// it is first seen and again every half second, so that one which is revoked by any process stops within a second. That
// a key was used is remembered here and handed to the store behind the requests, at most once a minute for each.

import type { IncomingMessage } from 'node:http';
import { type ApiKey, hashOf, isWellFormed } from '../accounts/api-key.ts';
import type { Actor } from '../ledger/posting.ts';
import type { ApiKeys } from '../store/store.ts';

export const FRESH_MS = 500;

/** Keys remembered at once; with more in use, the longest known make room and are looked up again. */
export const REMEMBERED_MAX = 10_000;

/** How often first uses are handed over. */
const HAND_OVER_MS = 1_000;
/** How long a use that was handed over stands for those that follow. */
const USE_MS = 60_000;

const BEARER = /^bearer +(\S+) *$/i;

/** Who calls, as postings name it. */
export interface Caller extends ApiKey {
  readonly actor: Actor;
}

export interface KnownKey {
  readonly key: Caller;
  readonly hash: string;
  readonly checkedAtMs: number;
}

/** What a connection keeps of its latest caller. */
export interface LatestCaller {
  authorization: string;
  knownKey: KnownKey | null;
}

interface LookUp {
  readonly startedMs: number;
  readonly caller: Promise<Caller | null>;
}

export class Authenticator {
  readonly #apiKeys: ApiKeys;
  readonly #remembered = new Map<string, KnownKey>();
  /** Look-ups under way, by hash: many requests may come while a key is asked for. */
  readonly #lookUps = new Map<string, LookUp>();
  /** By key, when a use was last noted. */
  readonly #notedAtMs = new Map<number, number>();
  /** Keys that were used, which the store does not know yet. */
  readonly #used = new Set<number>();
  #timer: NodeJS.Timeout | null = null;
  #handingOver: Promise<void> | null = null;

  constructor(apiKeys: ApiKeys) {
    this.#apiKeys = apiKeys;
  }

  /** Begins to hand over uses. */
  start(): void {
    this.#timer = setInterval(() => void this.handOverUses(), HAND_OVER_MS);
  }

  /** Hands over what is left. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#handingOver;
    await this.handOverUses();
  }

  /** One at a time; what cannot be stored is forgotten until the key is used again. */
  handOverUses(): Promise<void> {
    if (this.#used.size === 0) return this.#handingOver ?? Promise.resolve();
    this.#handingOver ??= this.#handOver().finally(() => {
      this.#handingOver = null;
    });
    return this.#handingOver;
  }

  /**
   * The key of a request, at once where it is known; null for one that is missing, malformed, unknown or revoked. The
   * caller answers all four alike, so that nobody learns which.
   *
   * @param latest of the same connection: the key of the request before need not be hashed again, nor be of the right form
   * @throws StoreFault (rejects) when the key cannot be looked up
   */
  authenticate(request: IncomingMessage, latest: LatestCaller): Caller | null | Promise<Caller | null> {
    const authorization = authorizationOf(request);
    if (authorization === null) return null;
    const nowMs = performance.now();
    if (latest.knownKey !== null && latest.authorization === authorization) {
      const { key, hash, checkedAtMs } = latest.knownKey;
      if (nowMs - checkedAtMs < FRESH_MS) return key;
      return this.#fresh(hash, nowMs, authorization, latest) ?? this.#lookUp(hash, nowMs);
    }
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined) return null;
    const hash = hashOf(secret);
    const fresh = this.#fresh(hash, nowMs, authorization, latest);
    if (fresh !== null) return fresh;
    return this.#remembered.has(hash) || isWellFormed(secret) ? this.#lookUp(hash, nowMs) : null;
  }

  /** Whom a key belongs to that was looked up a moment ago, now known to the connection as well; null for any other. */
  #fresh(hash: string, nowMs: number, authorization: string, latest: LatestCaller): Caller | null {
    const remembered = this.#remembered.get(hash);
    if (remembered === undefined || nowMs - remembered.checkedAtMs >= FRESH_MS) return null;
    latest.authorization = authorization;
    latest.knownKey = remembered;
    return this.#noted(remembered.key, remembered.checkedAtMs);
  }

  /** Whose the request seems to be, judged by what is known without a look-up: before anything is done for it. */
  accountOf({ headers: { authorization } }: IncomingMessage, latest: LatestCaller): number | null {
    if (authorization === undefined) return null;
    if (latest.knownKey !== null && latest.authorization === authorization) return latest.knownKey.key.account;
    const secret = BEARER.exec(authorization)?.[1];
    const remembered = secret === undefined ? undefined : this.#remembered.get(hashOf(secret));
    if (remembered === undefined) return null;
    latest.authorization = authorization;
    latest.knownKey = remembered;
    return remembered.key.account;
  }

  /** Requests share one, but for one that takes longer than its answer would be fresh. */
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
    this.#remembered.delete(hash);
    if (found === null) return null;
    const key = { ...found, actor: `key:${found.id}` as const };
    if (this.#remembered.size >= REMEMBERED_MAX) this.#forgetOldest();
    this.#remembered.set(hash, { key, hash, checkedAtMs });
    return this.#noted(key, checkedAtMs);
  }

  #noted(key: Caller, nowMs: number): Caller {
    const notedAtMs = this.#notedAtMs.get(key.id);
    if (notedAtMs !== undefined && nowMs - notedAtMs < USE_MS) return key;
    if (this.#notedAtMs.size >= REMEMBERED_MAX) this.#notedAtMs.clear();
    this.#notedAtMs.set(key.id, nowMs);
    this.#used.add(key.id);
    return key;
  }

  async #handOver(): Promise<void> {
    const ids = [...this.#used];
    this.#used.clear();
    try {
      await this.#apiKeys.noteUses(ids);
    } catch {
      // When a key was last used is told to the minute, and nobody's request depends on it.
      for (const id of ids) this.#notedAtMs.delete(id);
    }
  }

  #forgetOldest(): void {
    for (const hash of this.#remembered.keys()) {
      this.#remembered.delete(hash);
      return;
    }
  }
}

/** Node keeps the first of two `Authorization` headers and drops the other without a word: two are as good as none. */
function authorizationOf({ headers, rawHeaders }: IncomingMessage): string | null {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 'authorization'.length && name.toLowerCase() === 'authorization') count += 1;
  }
  return count === 1 ? authorization : null;
}
