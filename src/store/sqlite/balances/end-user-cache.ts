// The writer's cache of end users. The balances of a pending end user in the file do not include its latest postings
// yet. The cache has two generations, and flushes pending end users one generation later:
//
//   young: collects end users ──full──▶ old: flushed evenly until the next young generation is full, then dropped
//
// The order of the file lets one page write serve several end users. After a crash, pending postings are read from the
// journal.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type EndUserKey, endUserOf, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { NEVER, nextEventAt } from '../../../ledger/next-event.ts';
import { EMPTY_STATE, type EndUserState, liveState, sizeOf } from '../../../ledger/state.ts';
import { sortedPlaces } from '../file/sorted-places.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { BalanceWriter } from './balance-writer.ts';
import { EndUserReader, unflushedEndUsers } from './end-user-reader.ts';

/**
 * The limits of one generation. They bound the memory in use, and the number of postings that the next start must read.
 */
export interface CacheLimits {
  readonly endUsersMax: number;
  /** Maximum number of postings that are appended while the generation is young. */
  readonly postingsMax: number;
  /** Maximum number of cycles in the generation. A cycle takes about 150 bytes. */
  readonly cyclesMax: number;
  /** Maximum time for which a generation stays young while there is something to write. */
  readonly ageMaxMs: number;
  /** Maximum number of pending postings of one end user. Each read of the end user applies all of them. */
  readonly perUserMax: number;
}

export const CACHE_LIMITS: CacheLimits = {
  endUsersMax: 65_536,
  postingsMax: 100_000,
  cyclesMax: 200_000,
  ageMaxMs: 60_000,
  perUserMax: 64,
};

/** A pending balance is flushed before this many generations have ended. */
const GENERATIONS = 2;

/** The cache contains many of these objects, so each field costs memory. */
export interface CachedEndUser {
  /** The `endUserText` of the end user. */
  readonly name: string;
  /** The state in the file; null until it is read. */
  stored: EndUserState | null;
  /** The latest posting that `stored` includes; null if there is none. */
  storedPosting: number | null;
  /**
   * The instant of the next event according to `stored`, or `NEVER`. This field saves computing it from `stored`, which
   * is usually not in a CPU cache.
   */
  storedDueAt: Instant;
  /** The current state, which still has all cycles of `stored`, even if they have ended. */
  state: EndUserState;
  latestPosting: number | null;
  pendingPostings: number;
  isQueued: boolean;
}

export class EndUserCache {
  readonly #limits: CacheLimits;
  readonly #reader: EndUserReader;
  readonly #balances: BalanceWriter;
  readonly #saveFlushed: Statement;
  #young = new Map<string, CachedEndUser>();
  #old = new Map<string, CachedEndUser>();
  #youngCycles = 0;
  /** The end users of the young generation that must be flushed. `#places` contains their sort keys. */
  #queued: CachedEndUser[] = [];
  #places: number[] = [];
  /** The end users of the old generation that are not flushed yet. The next one to flush is the last element. */
  #flushing: CachedEndUser[] = [];
  #flushingTotal = 0;
  /** The number of the latest posting in the journal when the young generation began. */
  #beganBehind: number;
  #beganAt: Instant;
  #now: Instant;
  #latestPosting: number;
  #rotations = 0;
  #isWriting = false;

  /**
   * Adds the end users that have pending postings in the journal to the cache.
   *
   * @param now the latest instant that the ledger has issued
   */
  constructor(db: DatabaseSync, limits: CacheLimits, latestPosting: number, now: Instant) {
    this.#limits = limits;
    this.#reader = new EndUserReader(db);
    this.#balances = new BalanceWriter(db);
    this.#saveFlushed = prepare(db, 'UPDATE flushed SET posting = ?');
    this.#beganBehind = Number(db.prepare('SELECT posting FROM flushed').get()?.posting);
    this.#beganAt = now;
    this.#now = now;
    this.#latestPosting = latestPosting;
    for (const [user, latestPosting] of unflushedEndUsers(db)) {
      const unread = { stored: null, storedPosting: null, storedDueAt: NEVER, state: EMPTY_STATE, latestPosting };
      this.#queue(this.#add({ name: endUserText(user), ...unread, pendingPostings: 0, isQueued: false }));
    }
  }

  get hasPending(): boolean {
    return this.#queued.length + this.#flushing.length > 0;
  }

  /** Returns the number of generations that were dropped since the last call. */
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
    const young = this.#young.get(name);
    if (young !== undefined) return this.#known(young, now);
    const old = this.#old.get(name);
    if (old !== undefined) return this.#known(this.#add(old), now);
    const { state, latestPosting } = this.#reader.read(user, null, now);
    const read = { stored: state, storedPosting: latestPosting, storedDueAt: nextEventAt(state), state, latestPosting };
    return this.#add({ name, ...read, pendingPostings: 0, isQueued: false });
  }

  /** @param postings the number of new postings of the end user */
  change(cached: CachedEndUser, state: EndUserState, postings: number, latestPosting: number): void {
    this.#youngCycles += Math.max(0, sizeOf(state) - sizeOf(cached.state));
    cached.state = state;
    cached.latestPosting = latestPosting;
    cached.pendingPostings += postings;
    this.#latestPosting = Math.max(this.#latestPosting, latestPosting);
    if (!cached.isQueued) this.#queue(cached);
  }

  /**
   * The search for due events reads only the file. If the due instant in the file would mislead the search, this method
   * flushes the end user at once.
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
   * @returns whether anything was written; a batch without changes writes only if a generation is full
   */
  keepUp(changed: readonly CachedEndUser[]): boolean {
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

  /** How full the young generation is: from 0 to 1, or slightly more. */
  get #progress(): number {
    const { endUsersMax, postingsMax, cyclesMax, ageMaxMs } = this.#limits;
    const postings = this.#latestPosting - this.#beganBehind;
    const age = this.#now - this.#beganAt;
    const { size } = this.#young;
    return Math.max(size / endUsersMax, postings / postingsMax, this.#youngCycles / cyclesMax, age / ageMaxMs);
  }

  #add(cached: CachedEndUser): CachedEndUser {
    this.#young.set(cached.name, cached);
    this.#youngCycles += sizeOf(cached.state);
    return cached;
  }

  #known(cached: CachedEndUser, now: Instant): CachedEndUser {
    this.#read(cached);
    // An ended cycle is dropped from the state only after its final values are in the file.
    if (cached.storedPosting !== cached.latestPosting) return cached;
    const live = liveState(cached.state, now);
    if (live === cached.state) return cached;
    cached.state = live;
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
    cached.state = current.state;
    cached.latestPosting = current.latestPosting;
    return cached;
  }

  #queue(cached: CachedEndUser): void {
    cached.isQueued = true;
    this.#queued.push(cached);
    this.#places.push(placeOf(endUserOf(cached.name)));
  }

  #flushDownTo(count: number): void {
    while (this.#flushing.length > Math.max(0, count)) {
      const cached = this.#flushing.pop() as CachedEndUser;
      cached.isQueued = false;
      this.#flush(cached);
      this.#old.delete(cached.name);
    }
  }

  /**
   * Drops the old generation, which must be completely flushed: the stored balances now include all postings from
   * before the young generation began. The young generation then becomes the old one.
   */
  #rotate(): void {
    assert(this.#flushing.length === 0, 'a generation is dropped when all of it is flushed');
    this.#saveFlushed.run(this.#beganBehind);
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngCycles = 0;
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
 * Approximates the order of end users in the file, so that neighbors are flushed together: 3 bits of the account and 28
 * bits of the UUID.
 */
function placeOf({ account, endUser }: EndUserKey): number {
  return (account % 8) * 2 ** 28 + Number.parseInt(endUser.slice(0, 7), 16);
}
