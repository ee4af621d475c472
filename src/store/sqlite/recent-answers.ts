// In which slips the latest answers are, by the hashes of their keys: numbers in two long arrays. Each stands at the place
// that its hash has in the order of all hashes, or a little behind it, so that they can be gone through in order, a part
// at a time, without ever being sorted.

import assert from 'node:assert/strict';
import { HASHES } from './answer-hash.ts';
import { grown } from './user-table.ts';

/** A look-up sees two places or so. */
const PLACES_PER_ANSWER = 2;
/** Behind the last place, for those whose own is taken. */
const SLACK = 256;

/** Told of an entry. */
export type TakeEntry = (hash: number, slip: number) => void;

export class RecentAnswers {
  /** No slip is before it. */
  readonly firstSlip: number;
  readonly #max: number;
  readonly #places: number;
  #hashes: Uint32Array;
  /** How far behind `firstSlip` its slip is, and 1; 0 where nothing is. */
  #slips: Uint32Array;
  #count = 0;

  /** @param expected more than `max` where a start finds more */
  constructor(max: number, firstSlip: number, expected = max) {
    this.firstSlip = firstSlip;
    this.#max = max;
    this.#places = Math.max(max, expected) * PLACES_PER_ANSWER;
    this.#hashes = new Uint32Array(this.#places + SLACK);
    this.#slips = new Uint32Array(this.#places + SLACK);
  }

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count >= this.#max;
  }

  add(hash: number, slip: number): void {
    assert(slip >= this.firstSlip, 'slips come in sequence');
    let place = this.#placeOf(hash);
    while (this.#slips[place] !== 0) {
      place += 1;
      if (place === this.#slips.length) this.#grow();
    }
    this.#hashes[place] = hash;
    this.#slips[place] = slip - this.firstSlip + 1;
    this.#count += 1;
  }

  find(hash: number, take: TakeEntry): void {
    for (let place = this.#placeOf(hash); ; place++) {
      const slip = this.#slips[place];
      if (slip === 0 || slip === undefined) return;
      if (this.#hashes[place] === hash) take(hash, slip - 1 + this.firstSlip);
    }
  }

  /** Those whose hashes are in `from` … `to`, both included, in any order. */
  within(from: number, to: number, take: TakeEntry): void {
    const end = this.#placeOf(to);
    for (let place = this.#placeOf(from); place < this.#slips.length; place++) {
      const slip = this.#slips[place] as number;
      if (slip === 0 && place > end) return;
      const hash = this.#hashes[place] as number;
      if (slip !== 0 && hash >= from && hash <= to) take(hash, slip - 1 + this.firstSlip);
    }
  }

  #placeOf(hash: number): number {
    return Math.floor((hash / HASHES) * this.#places);
  }

  #grow(): void {
    this.#hashes = grown(this.#hashes, this.#hashes.length + SLACK);
    this.#slips = grown(this.#slips, this.#slips.length + SLACK);
  }
}
