// The hash by which the answer to an idempotency key is found: HalfSipHash-1-3 (https://www.aumasson.jp/siphash/) over whom
// the key belongs to and the key, with a seed that the ledger file keeps to itself. 0.2 µs for a UUID.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { WORDS, writeWords } from './uuid.ts';

/** One more than the largest hash. */
export const HASHES = 2 ** 32;

/** Before the key: the account as two words, and the end user. */
const KEY_AT = 2 + WORDS;
const WORDS_FIRST = KEY_AT + 130;
const SEED_BYTES = 8;
const ROUNDS_AT_END = 3;

export class AnswerHash {
  readonly #seed: readonly [number, number];
  #words = new Uint32Array(WORDS_FIRST);

  constructor(db: DatabaseSync) {
    const seed = db.prepare('SELECT seed FROM answer_seed').get()?.seed as Uint8Array;
    assert(seed.length === SEED_BYTES, 'the hash has its seed');
    const view = new DataView(seed.buffer, seed.byteOffset);
    this.#seed = [view.getUint32(0, true), view.getUint32(4, true)];
  }

  /** @returns 0 … 2^32−1 */
  of({ account, endUser }: EndUserKey, key: string): number {
    const length = KEY_AT + (key.length >> 1) + 1;
    if (length > this.#words.length) this.#words = new Uint32Array(length);
    const words = this.#words;
    words[0] = account;
    words[1] = account / HASHES;
    writeWords(words, 2, endUser);
    let at = KEY_AT;
    for (let place = 0; place + 1 < key.length; place += 2)
      words[at++] = key.charCodeAt(place) | (key.charCodeAt(place + 1) << 16);
    // The last word holds the character that is left over and the length, so that no two keys give the same words.
    const last = key.length % 2 === 1 ? key.charCodeAt(key.length - 1) : 0;
    words[at++] = last | (key.length << 16);
    return halfSipHash(words, at, this.#seed);
  }
}

function halfSipHash(words: Uint32Array, length: number, [seed0, seed1]: readonly [number, number]): number {
  let v0 = seed0 | 0;
  let v1 = seed1 | 0;
  let v2 = 0x6c79_6765 ^ seed0;
  let v3 = 0x7465_6462 ^ seed1;
  for (let at = 0; at < length + ROUNDS_AT_END; at++) {
    const word = at < length ? (words[at] as number) : 0;
    if (at === length) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return (v1 ^ v3) >>> 0;
}
