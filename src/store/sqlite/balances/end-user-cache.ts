// The end users that the writer knows, and which of them are pending: their balances in the file do not count their latest
// postings yet. Known end users are kept in two generations, and pending ones are flushed a generation behind:
//
//   known, and pending if something happened ──generation is full──▶ older: flushed evenly until the next one is full, and dropped
//
// A generation is flushed in the order of the file, so that a page is written once for several end users. What is pending is
// in the journal: after a crash it is found there.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type EndUserKey, endUserOf, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../../ledger/state.ts';
import { sortedPlaces } from '../file/sorted-places.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { BalanceWriter } from './balance-writer.ts';
import { EndUserReader, unflushedEndUsers } from './end-user-reader.ts';

/** Of one generation. There are two: they bound the memory, and what a start reads. */
export interface CacheLimits {
  readonly endUsersMax: number;
  /** Postings that are appended while the generation is the current one. */
  readonly postingsMax: number;
  /** Some 150 bytes each. */
  readonly cyclesMax: number;
  /** Pending postings of one end user: a reader folds them. */
  readonly perUserMax: number;
}

export const CACHE_LIMITS: CacheLimits = {
  endUsersMax: 65_536,
  postingsMax: 100_000,
  cyclesMax: 200_000,
  perUserMax: 64,
};

/** An end user that is known. There are many: each field counts. */
export interface CachedEndUser {
  /** Its `endUserText`. */
  readonly name: string;
  /** As the file has it; null while it was not read. */
  stored: EndUserState | null;
  /** The latest posting that `stored` counts; null when there is none. */
  storedPosting: number | null;
  /** As it is, with all cycles of `stored`. */
  state: EndUserState;
  latestPosting: number | null;
  pendingPostings: number;
  /** Whether it is among those that will be flushed. */
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
  /** Those of this generation that will be flushed, and where each stands among the balances. */
  #queued: CachedEndUser[] = [];
  #places: number[] = [];
  /** Those of the generation before that are left, the next one last. */
  #flushing: CachedEndUser[] = [];
  #flushingTotal = 0;
  /** The latest posting of all when this generation began. */
  #beganAt: number;
  /** The latest instant of a `load`. */
  #now: Instant = 0;
  #latestPosting: number;
  #rotations = 0;
  /** Whether rows of balances are on their way. */
  #isWriting = false;

  /** Begins with what the journal says is pending. */
  constructor(db: DatabaseSync, limits: CacheLimits, latestPosting: number) {
    this.#limits = limits;
    this.#reader = new EndUserReader(db);
    this.#balances = new BalanceWriter(db);
    this.#saveFlushed = prepare(db, 'UPDATE flushed SET posting = ?');
    this.#beganAt = Number(db.prepare('SELECT posting FROM flushed').get()?.posting);
    this.#latestPosting = latestPosting;
    for (const [user, latestPosting] of unflushedEndUsers(db)) {
      const unread = { stored: null, storedPosting: null, state: EMPTY_STATE, latestPosting };
      this.#queue(this.#add({ name: endUserText(user), ...unread, pendingPostings: 0, isQueued: false }));
    }
  }

  get hasPending(): boolean {
    return this.#queued.length + this.#flushing.length > 0;
  }

  /** How often a generation was dropped, since this was asked last. */
  takeRotations(): number {
    const rotations = this.#rotations;
    this.#rotations = 0;
    return rotations;
  }

  /**
   * With at least the cycles that are live at `now`.
   *
   * @param name its `endUserText`
   */
  load(user: EndUserKey, name: string, now: Instant): CachedEndUser {
    this.#now = now;
    const young = this.#young.get(name);
    if (young !== undefined) return this.#known(young, now);
    const old = this.#old.get(name);
    if (old !== undefined) return this.#known(this.#add(old), now);
    const { state, latestPosting } = this.#reader.read(user, null, now);
    const read = { stored: state, storedPosting: latestPosting, state, latestPosting };
    return this.#add({ name, ...read, pendingPostings: 0, isQueued: false });
  }

  /** Takes over what has happened to an end user that `load` gave out. */
  change(cached: CachedEndUser, state: EndUserState, postings: number, latestPosting: number): void {
    this.#youngCycles += Math.max(0, state.cycles.length - cached.state.cycles.length);
    cached.state = state;
    cached.latestPosting = latestPosting;
    cached.pendingPostings += postings;
    this.#latestPosting = Math.max(this.#latestPosting, latestPosting);
    if (!cached.isQueued) this.#queue(cached);
  }

  /** Writes an end user back at once: others would find what is due for it in the file. */
  flush(cached: CachedEndUser): void {
    const { stored, storedPosting, state, latestPosting } = this.#read(cached);
    this.#isWriting = true;
    this.#balances.write(
      endUserOf(cached.name),
      { state: stored as EndUserState, latestPosting: storedPosting },
      { state, latestPosting },
    );
    cached.stored = state;
    cached.storedPosting = latestPosting;
    cached.pendingPostings = 0;
  }

  /**
   * To be called with each batch, behind its changes.
   *
   * @returns whether anything was written: a batch that changes nothing writes only where a generation is full
   */
  keepUp(changed: readonly CachedEndUser[]): boolean {
    const progress = this.#progress;
    if (changed.length === 0 && progress < 1) return false;
    for (const cached of changed) if (cached.pendingPostings >= this.#limits.perUserMax) this.flush(cached);
    this.#flushDownTo(this.#flushingTotal * (1 - progress));
    if (progress >= 1) this.#rotate();
    this.#finishWriting();
    return true;
  }

  /** Flushes up to `max` end users while there is nothing else to do. */
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

  /** How full this generation is: from 0 to 1, and a little more. */
  get #progress(): number {
    const { endUsersMax, postingsMax, cyclesMax } = this.#limits;
    const postings = this.#latestPosting - this.#beganAt;
    return Math.max(this.#young.size / endUsersMax, postings / postingsMax, this.#youngCycles / cyclesMax);
  }

  #add(cached: CachedEndUser): CachedEndUser {
    this.#young.set(cached.name, cached);
    this.#youngCycles += cached.state.cycles.length;
    return cached;
  }

  #known(cached: CachedEndUser, now: Instant): CachedEndUser {
    this.#read(cached);
    // What has ended leaves the state once its last values are in the file.
    if (cached.storedPosting !== cached.latestPosting) return cached;
    const live = liveState(cached.state, now);
    if (live === cached.state) return cached;
    cached.state = live;
    cached.stored = live;
    return cached;
  }

  /** One that was found in the journal at the start has to be read first. */
  #read(cached: CachedEndUser): CachedEndUser {
    if (cached.stored !== null) return cached;
    const { stored, current } = this.#reader.replay(endUserOf(cached.name), cached.latestPosting as number, this.#now);
    cached.stored = stored.state;
    cached.storedPosting = stored.latestPosting;
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
      this.flush(cached);
      this.#old.delete(cached.name);
    }
  }

  /** All of the older generation is flushed, and with it every posting from before this one began. */
  #rotate(): void {
    assert(this.#flushing.length === 0, 'a generation is dropped when all of it is flushed');
    this.#saveFlushed.run(this.#beganAt);
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngCycles = 0;
    const places = sortedPlaces(this.#places).reverse();
    this.#flushing = Array.from(places, (place) => this.#queued[place] as CachedEndUser);
    this.#flushingTotal = places.length;
    this.#queued = [];
    this.#places = [];
    this.#beganAt = this.#latestPosting;
    this.#rotations += 1;
  }
}

/** Close enough to the order of the file to bring neighbours together: 3 bits of the account and 28 of the UUID. */
function placeOf({ account, endUser }: EndUserKey): number {
  return (account % 8) * 2 ** 28 + Number.parseInt(endUser.slice(0, 7), 16);
}
