// Tells most of the hashes that a segment does not have without looking there: a Bloom filter in which all bits of a hash
// are on one line of the processor's cache (https://algo2.iti.kit.edu/documents/cacheefficientbloomfilters-jea.pdf).

import { HASHES } from './answer-hash.ts';
import { spread } from './hash-mixing.ts';

/** A hundredth of the hashes that are not there pass. */
const BITS_PER_ENTRY = 10;
const BLOCK_WORDS = 16;
const BLOCK_BITS = 32 * BLOCK_WORDS;

const MORE_MIX = 0x85eb_ca6b;

/** How much memory one for so many entries takes. */
export function filterBytes(entries: number): number {
  return blocksFor(entries) * BLOCK_WORDS * Uint32Array.BYTES_PER_ELEMENT;
}

function blocksFor(entries: number): number {
  return Math.max(1, Math.ceil((entries * BITS_PER_ENTRY) / BLOCK_BITS));
}

export class AnswerFilter {
  readonly #blocks: number;
  readonly #words: Uint32Array;

  constructor(entries: number) {
    this.#blocks = blocksFor(entries);
    this.#words = new Uint32Array(this.#blocks * BLOCK_WORDS);
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  add(hash: number): void {
    const block = this.#blockOf(hash);
    for (let bits = mixed(hash), more = 0; more < 2; bits = Math.imul(bits, MORE_MIX), more++) {
      this.#set(block, bits >>> 23);
      this.#set(block, bits >>> 14);
    }
  }

  mayHave(hash: number): boolean {
    const block = this.#blockOf(hash);
    for (let bits = mixed(hash), more = 0; more < 2; bits = Math.imul(bits, MORE_MIX), more++)
      if (!this.#has(block, bits >>> 23) || !this.#has(block, bits >>> 14)) return false;
    return true;
  }

  /** Hashes come in order where a segment is written: their blocks do as well. */
  #blockOf(hash: number): number {
    return Math.floor((hash / HASHES) * this.#blocks) * BLOCK_WORDS;
  }

  #set(block: number, bit: number): void {
    const word = block + ((bit >>> 5) & (BLOCK_WORDS - 1));
    this.#words[word] = (this.#words[word] as number) | (1 << (bit & 31));
  }

  #has(block: number, bit: number): boolean {
    return ((this.#words[block + ((bit >>> 5) & (BLOCK_WORDS - 1))] as number) & (1 << (bit & 31))) !== 0;
  }
}

/** The high bits of a hash say which block; of those that are left, all are to count. */
function mixed(hash: number): number {
  const bits = spread(hash ^ (hash >>> 15));
  return Math.imul(bits ^ (bits >>> 13), MORE_MIX) | 1;
}
