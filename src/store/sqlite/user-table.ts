// A number for each of many end users, from 0 on: what is known of them stands in arrays at that number. Tens of thousands
// of names in a Map cost V8 ten times as much, and a copy of the whole Map each time that it has seen as many come and go.

import { randomInt } from 'node:crypto';
import type { EndUserKey } from '../../ledger/command.ts';
import { spread } from './hash-mixing.ts';
import { uuidOfWords, WORDS, writeWords } from './uuid.ts';

export type Slot = number;

export const NO_SLOT = -1;

/** Accounts are counted from 1. */
const NOBODY = 0;

const SLOTS_FIRST = 1_024;
/** At least so many places in the index for each slot: a look-up sees a place or two. */
const PLACES_PER_SLOT = 2;
const SEED_MAX = 2 ** 32;
const NEIGHBOUR_SHIFT = 20;
const NEIGHBOURS = 2 ** (32 - NEIGHBOUR_SHIFT);

export class UserTable {
  /** Whoever chooses ids does not know where they fall. */
  readonly #seed = randomInt(SEED_MAX);
  #accounts = new Float64Array(SLOTS_FIRST);
  #words = new Uint32Array(SLOTS_FIRST * WORDS);
  /** By the hash of an end user, its slot and 1, or 0. */
  #places = new Int32Array(SLOTS_FIRST * PLACES_PER_SLOT);
  /** Slots that were given back. */
  readonly #free: Slot[] = [];
  /** Slots that were ever given out. */
  #used = 0;
  readonly #wanted = new Uint32Array(WORDS);

  get size(): number {
    return this.#used - this.#free.length;
  }

  /** Every slot is below it. */
  get capacity(): number {
    return this.#accounts.length;
  }

  /** Those that are given out, in any order. */
  *slots(): Generator<Slot> {
    for (let slot = 0; slot < this.#used; slot++) if (this.isTaken(slot)) yield slot;
  }

  find({ account, endUser }: EndUserKey): Slot {
    writeWords(this.#wanted, 0, endUser);
    return (this.#places[this.#placeOf(account, this.#wanted, 0)] as number) - 1;
  }

  /** Whether it is given out. */
  isTaken(slot: Slot): boolean {
    return this.#accounts[slot] !== NOBODY;
  }

  /** @returns the slot that it has, or is given now */
  add({ account, endUser }: EndUserKey): Slot {
    writeWords(this.#wanted, 0, endUser);
    const place = this.#placeOf(account, this.#wanted, 0);
    const known = this.#places[place] as number;
    if (known > 0) return known - 1;
    if (this.#free.length === 0 && this.#used === this.capacity) {
      this.#grow();
      return this.add({ account, endUser });
    }
    const slot = this.#free.pop() ?? this.#used++;
    this.#accounts[slot] = account;
    this.#words.set(this.#wanted, slot * WORDS);
    this.#places[place] = slot + 1;
    return slot;
  }

  remove(slot: Slot): void {
    const place = this.#placeOf(this.#accounts[slot] as number, this.#words, slot * WORDS);
    this.#places[place] = 0;
    this.#accounts[slot] = NOBODY;
    this.#free.push(slot);
    this.#closeGap(place);
  }

  user(slot: Slot): EndUserKey {
    return { account: this.#accounts[slot] as number, endUser: uuidOfWords(this.#words, slot * WORDS) };
  }

  /** The same for end users of an account whose UUIDs begin with the same three digits: 1 of 4,096. */
  neighbourhood(slot: Slot): number {
    return (this.#accounts[slot] as number) * NEIGHBOURS + ((this.#words[slot * WORDS] as number) >>> NEIGHBOUR_SHIFT);
  }

  /** As their rows stand in the file, for two of one account. */
  compare(a: Slot, b: Slot): number {
    for (let word = 0; word < WORDS; word++) {
      const difference = (this.#words[a * WORDS + word] as number) - (this.#words[b * WORDS + word] as number);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  /** Where this end user stands in the index, or would. */
  #placeOf(account: number, words: Uint32Array, at: number): number {
    const mask = this.#places.length - 1;
    for (let place = this.#hash(account, words, at) & mask; ; place = (place + 1) & mask) {
      const slot = (this.#places[place] as number) - 1;
      if (slot < 0 || this.#is(slot, account, words, at)) return place;
    }
  }

  #is(slot: Slot, account: number, words: Uint32Array, at: number): boolean {
    const own = slot * WORDS;
    for (let word = 0; word < WORDS; word++) if (this.#words[own + word] !== words[at + word]) return false;
    return this.#accounts[slot] === account;
  }

  #hash(account: number, words: Uint32Array, at: number): number {
    let hash = this.#seed ^ account;
    for (let word = 0; word < WORDS; word++) {
      hash = spread(hash ^ (words[at + word] as number));
      hash ^= hash >>> 15;
    }
    return hash;
  }

  /** Whoever stands behind a gap because its own place was taken moves up. */
  #closeGap(gap: number): void {
    const mask = this.#places.length - 1;
    for (let place = (gap + 1) & mask; this.#places[place] !== 0; place = (place + 1) & mask) {
      const moved = this.#places[place] as number;
      this.#places[place] = 0;
      const slot = moved - 1;
      this.#places[this.#placeOf(this.#accounts[slot] as number, this.#words, slot * WORDS)] = moved;
    }
  }

  #grow(): void {
    this.#accounts = grown(this.#accounts, 2 * this.#accounts.length);
    this.#words = grown(this.#words, 2 * this.#words.length);
    this.#places = new Int32Array(2 * this.#places.length);
    for (let slot = 0; slot < this.#used; slot++) {
      this.#places[this.#placeOf(this.#accounts[slot] as number, this.#words, slot * WORDS)] = slot + 1;
    }
  }
}

/** A longer copy. */
export function grown<Numbers extends Float64Array | Uint32Array | Int32Array | Uint8Array>(
  numbers: Numbers,
  length: number,
): Numbers {
  const longer = new (numbers.constructor as new (length: number) => Numbers)(length);
  longer.set(numbers);
  return longer;
}
