// The writer's cache of end users. An end user is pending if the balances in the file do not include its latest
// postings yet. Pending end users are flushed in generations, and then stay in the cache for some time:
//
//   young: collects pending end users ──full──▶ old: flushed at an even pace until the next young generation is full
//
// A generation is flushed in file order, so that one page write serves several end users. After a crash, pending
// postings are read from the journal.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type EndUserKey, endUserOf, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { NEVER, nextEventAt } from '../../../ledger/next-event.ts';
import { EMPTY_STATE, type EndUserState, liveState, sizeOf } from '../../../ledger/state.ts';
import { hexNumber } from '../../../ledger/transaction-id.ts';
import { sortedPlaces } from '../file/sorted-places.ts';
import { numberOf, prepare, type Statement } from '../file/statements.ts';
import { BalanceWriter } from './balance-writer.ts';
import { type Balances, EndUserReader, unflushedEndUsers } from './end-user-reader.ts';

/** The limits of one generation. They bound the memory in use, and the number of postings to read at the next start. */
export interface CacheLimits {
  readonly endUsersMax: number;
  /** Maximum number of postings that are appended while the generation is young. */
  readonly postingsMax: number;
  /** Maximum number of cycles and holds in the generation. A cycle takes about 250 bytes. */
  readonly cyclesMax: number;
  /** Maximum age of the young generation, checked with each batch. */
  readonly ageMaxMs: number;
  /** Maximum number of pending postings of one end user. Each read of the end user applies all of them. */
  readonly perUserMax: number;
}

export const CACHE_LIMITS: CacheLimits = {
  endUsersMax: 65_536,
  postingsMax: 100_000,
  cyclesMax: 300_000,
  ageMaxMs: 60_000,
  perUserMax: 64,
};

/**
 * A balance stays pending at most until this many generations have become full: its own generation and the next one.
 */
const GENERATIONS = 2;

/**
 * The cache has room for the end users and cycles of this many generations. Under load, about one generation is pending
 * at any time; the rest of the cache contains end users that have been flushed.
 */
const CACHED_GENERATIONS = 1.5;

/** The cache drops an end user that no batch has loaded for this long, even if the cache is not full. */
const UNUSED_MS = 2 * 60_000;

/**
 * To find end users to drop, each batch examines `batch` cached end users, and `newEndUser` more for each end user that
 * the batch has added to the cache.
 */
const EXAMINED = { batch: 64, newEndUser: 8 };

/** The cache contains many of these objects, so each field costs memory. */
export interface CachedEndUser {
  /** The `endUserText` of the end user. */
  readonly name: string;
  /** The state in the file; null until it is read. */
  stored: EndUserState | null;
  /** The latest posting that `stored` includes; null if there is none. */
  storedPosting: number | null;
  /**
   * The instant of the next event according to `stored`, or `NEVER`. This field avoids reading `stored`, which is
   * usually not in a CPU cache.
   */
  storedDueAt: Instant;
  /** The current state. It still contains all cycles of `stored`, even those that have ended. */
  state: EndUserState;
  latestPosting: number | null;
  pendingPostings: number;
  /** Whether one of the two generations contains the end user. */
  isQueued: boolean;
  /** Set when a batch loads the end user again, and cleared when `#makeRoom` examines the end user in a full cache. */
  isReused: boolean;
  /** When a batch last loaded the end user. */
  usedAt: Instant;
}

export class EndUserCache {
  readonly #limits: CacheLimits;
  readonly #reader: EndUserReader;
  readonly #balances: BalanceWriter;
  readonly #saveFlushed: Statement;
  readonly #cached = new Map<string, CachedEndUser>();
  /**
   * The end users of `#cached`, as the circular list of the CLOCK replacement algorithm. `#hand` is the position that
   * was examined last; the next search for end users to drop continues after it.
   */
  readonly #circle: CachedEndUser[] = [];
  #hand = 0;
  #cachedCycles = 0;
  /** The number of end users that batches have added to the cache since the last search for end users to drop. */
  #added = 0;
  /** The end users of the young generation. `#places` contains their sort keys; see `placeOf`. */
  #queued: CachedEndUser[] = [];
  #places: number[] = [];
  #queuedCycles = 0;
  /** The end users of the old generation that are not flushed yet. The next one to flush is the last element. */
  #flushing: CachedEndUser[] = [];
  #flushingTotal = 0;
  /** The last posting before the young generation began. Later postings count toward `postingsMax`. */
  #beganBehind: number;
  #beganAt: Instant;
  #now: Instant;
  #latestPosting: number;
  #rotations = 0;
  #isWriting = false;

  /**
   * Caches the end users that have pending postings in the journal.
   *
   * @param now the latest instant that the ledger has issued
   */
  constructor(db: DatabaseSync, limits: CacheLimits, latestPosting: number, now: Instant) {
    this.#limits = limits;
    this.#reader = new EndUserReader(db);
    this.#balances = new BalanceWriter(db);
    this.#saveFlushed = prepare(db, 'UPDATE flushed SET posting = ?');
    this.#beganBehind = numberOf(db, 'SELECT posting FROM flushed');
    this.#beganAt = now;
    this.#now = now;
    this.#latestPosting = latestPosting;
    for (const [user, latestPosting] of unflushedEndUsers(db))
      this.#queue(this.#add(endUserText(user), null, latestPosting));
  }

  get hasPending(): boolean {
    return this.#queued.length + this.#flushing.length > 0;
  }

  /** Returns the number of generations that were completely flushed since the last call. */
  takeRotations(): number {
    const rotations = this.#rotations;
    this.#rotations = 0;
    return rotations;
  }

  /**
   * Loads an end user, with at least the cycles that are live at `now`.
   *
   * @param name the `endUserText` of the end user
   */
  load(user: EndUserKey, name: string, now: Instant): CachedEndUser {
    this.#now = now;
    const cached = this.#cached.get(name);
    if (cached !== undefined) return this.#known(cached, now);
    this.#added += 1;
    const stored = this.#reader.read(user, null, now);
    return this.#add(name, stored, stored.latestPosting);
  }

  /** @param postings the number of new postings of the end user */
  change(cached: CachedEndUser, state: EndUserState, postings: number, latestPosting: number): void {
    this.#setState(cached, state);
    cached.latestPosting = latestPosting;
    cached.pendingPostings += postings;
    this.#latestPosting = Math.max(this.#latestPosting, latestPosting);
    if (!cached.isQueued) this.#queue(cached);
  }

  /**
   * Flushes the end user immediately if the search for due events, which reads only the file, would otherwise find an
   * event that is no longer due, or find a new event too late.
   */
  flushWhereDue(cached: CachedEndUser): void {
    const dueAt = nextEventAt(cached.state);
    const { storedDueAt } = cached;
    const isSoon = dueAt < storedDueAt && dueAt <= this.#now + GENERATIONS * this.#limits.ageMaxMs;
    if (storedDueAt <= this.#now || isSoon) this.#flush(cached);
  }

  #flush(cached: CachedEndUser): void {
    const { stored, storedPosting, state, latestPosting } = this.#read(cached);
    if (latestPosting === storedPosting) return;
    this.#isWriting = true;
    this.#balances.write(
      endUserOf(cached.name),
      { state: stored as EndUserState, latestPosting: storedPosting },
      { state, latestPosting },
    );
    cached.stored = state;
    cached.storedPosting = latestPosting;
    cached.storedDueAt = nextEventAt(state);
    cached.pendingPostings = 0;
  }

  /**
   * Call this for each batch, after `change` has been called for the end users of the batch.
   *
   * @returns whether anything was written. If `changed` is empty, nothing is written unless the young generation has
   * reached a limit or `flushWhereDue` has flushed an end user
   */
  keepUp(changed: readonly CachedEndUser[]): boolean {
    this.#makeRoom();
    const progress = this.#progress;
    if (changed.length === 0 && progress < 1 && !this.#isWriting) return false;
    for (const cached of changed) if (cached.pendingPostings >= this.#limits.perUserMax) this.#flush(cached);
    this.#flushDownTo(this.#flushingTotal * (1 - progress));
    if (progress >= 1) this.#rotate();
    this.#finishWriting();
    return true;
  }

  /** Flushes up to `max` end users. Call this while there is no batch to write. */
  flushIdle(max: number): void {
    let left = max;
    while (left > 0 && this.hasPending) {
      if (this.#flushing.length === 0) this.#rotate();
      const before = this.#flushing.length;
      this.#flushDownTo(before - left);
      left -= Math.max(1, before - this.#flushing.length);
    }
    if (!this.hasPending) this.#rotate();
    this.#finishWriting();
  }

  #finishWriting(): void {
    if (this.#isWriting) this.#balances.flush();
    this.#isWriting = false;
  }

  /**
   * How full or how old the young generation is, as a fraction of its limits. At 1 or above, the young generation
   * becomes the old one.
   */
  get #progress(): number {
    const { endUsersMax, postingsMax, cyclesMax, ageMaxMs } = this.#limits;
    const postings = this.#latestPosting - this.#beganBehind;
    const age = this.#now - this.#beganAt;
    const { length } = this.#queued;
    return Math.max(length / endUsersMax, postings / postingsMax, this.#queuedCycles / cyclesMax, age / ageMaxMs);
  }

  /**
   * The object is a literal without spreads: with spreads, V8 would store most of its fields in a separate array.
   *
   * @param stored the balances in the file; null if they have not been read
   */
  #add(name: string, stored: Balances | null, latestPosting: number | null): CachedEndUser {
    const cached: CachedEndUser = {
      name,
      stored: stored?.state ?? null,
      storedPosting: stored?.latestPosting ?? null,
      storedDueAt: stored === null ? NEVER : nextEventAt(stored.state),
      state: stored?.state ?? EMPTY_STATE,
      latestPosting,
      pendingPostings: 0,
      isQueued: false,
      isReused: false,
      usedAt: this.#now,
    };
    this.#cached.set(name, cached);
    this.#circle.push(cached);
    this.#cachedCycles += sizeOf(cached.state);
    return cached;
  }

  get #isFull(): boolean {
    const { endUsersMax, cyclesMax } = this.#limits;
    const max = CACHED_GENERATIONS;
    return this.#circle.length > max * endUsersMax || this.#cachedCycles > max * cyclesMax;
  }

  /**
   * Drops end users that no batch has loaded for `UNUSED_MS`. If the cache is full, also drops end users that have not
   * been reused, but only until the cache is no longer full. Never drops an end user of the young or old generation.
   */
  #makeRoom(): void {
    const circle = this.#circle;
    const max = EXAMINED.batch + this.#added * EXAMINED.newEndUser;
    this.#added = 0;
    const wasFull = this.#isFull;
    for (let examined = 0; examined < max && circle.length > 0 && this.#isFull === wasFull; examined++) {
      this.#hand = (this.#hand + 1) % circle.length;
      const cached = circle[this.#hand] as CachedEndUser;
      const isUnused = this.#now - cached.usedAt > UNUSED_MS;
      const isKept = !isUnused && (cached.isReused || !wasFull);
      if (wasFull) cached.isReused = false;
      if (isKept || cached.isQueued) continue;
      this.#cached.delete(cached.name);
      this.#cachedCycles -= sizeOf(cached.state);
      const last = circle.pop() as CachedEndUser;
      if (last !== cached) circle[this.#hand] = last;
    }
  }

  #setState(cached: CachedEndUser, state: EndUserState): void {
    const growth = sizeOf(state) - sizeOf(cached.state);
    this.#cachedCycles += growth;
    if (cached.isQueued) this.#queuedCycles += Math.max(0, growth);
    cached.state = state;
  }

  #known(cached: CachedEndUser, now: Instant): CachedEndUser {
    cached.isReused = true;
    cached.usedAt = now;
    this.#read(cached);
    // An ended cycle is dropped from the state only after its final values are in the file.
    if (cached.storedPosting !== cached.latestPosting) return cached;
    const live = liveState(cached.state, now);
    if (live === cached.state) return cached;
    this.#setState(cached, live);
    cached.stored = live;
    return cached;
  }

  /** Reads the end user if it had pending postings when the file was opened and has not been read yet. */
  #read(cached: CachedEndUser): CachedEndUser {
    if (cached.stored !== null) return cached;
    const { stored, current } = this.#reader.replay(endUserOf(cached.name), cached.latestPosting as number, this.#now);
    cached.stored = stored.state;
    cached.storedPosting = stored.latestPosting;
    cached.storedDueAt = nextEventAt(stored.state);
    this.#setState(cached, current.state);
    cached.latestPosting = current.latestPosting;
    return cached;
  }

  #queue(cached: CachedEndUser): void {
    cached.isQueued = true;
    this.#queued.push(cached);
    this.#places.push(placeOf(endUserOf(cached.name)));
    this.#queuedCycles += sizeOf(cached.state);
  }

  #flushDownTo(count: number): void {
    while (this.#flushing.length > Math.max(0, count)) {
      const cached = this.#flushing.pop() as CachedEndUser;
      cached.isQueued = false;
      this.#flush(cached);
    }
  }

  /**
   * Makes the young generation the old one. The previous old generation must be completely flushed, so the stored
   * balances now include all postings from before the young generation began.
   */
  #rotate(): void {
    assert(this.#flushing.length === 0, 'the old generation is completely flushed before the young one replaces it');
    this.#saveFlushed.run(this.#beganBehind);
    this.#queuedCycles = 0;
    const places = sortedPlaces(this.#places).reverse();
    this.#flushing = Array.from(places, (place) => this.#queued[place] as CachedEndUser);
    this.#flushingTotal = places.length;
    this.#queued = [];
    this.#places = [];
    this.#beganBehind = this.#latestPosting;
    this.#beganAt = this.#now;
    this.#rotations += 1;
  }
}

/**
 * Returns a sort key that approximates the order of end users in the file, so that neighbors are flushed together. The
 * key consists of 3 bits of the account and 28 bits of the UUID.
 */
function placeOf({ account, endUser }: EndUserKey): number {
  return (account % 8) * 2 ** 28 + hexNumber(endUser, 0, 7);
}
