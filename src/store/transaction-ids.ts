// Gives out transaction ids in ascending order: the instant of a batch, a sequence within it, and a random tail drawn
// from the operating system 4 KiB at a time.

import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import type { Instant } from '../ledger/instant.ts';
import { SEQUENCE_COUNT, type TransactionId, transactionId } from '../ledger/transaction-id.ts';

const TAIL_BYTES = 6;
const pool = Buffer.alloc(TAIL_BYTES * 683);
let offset = pool.length;

/** What was given out last: the next id comes after it. */
export interface IdPosition {
  readonly at: Instant;
  /** 0 when none was given out at `at`: sequence 0 belongs to renewals. */
  readonly sequence: number;
}

/** Behind everything that was given out up to `position`, and before all that follows. */
export function throughPosition({ at, sequence }: IdPosition): TransactionId {
  return transactionId({ at, sequence, tail: 'ffffffffffff' });
}

export class TransactionIds {
  #at: Instant;
  #sequence: number;
  readonly #nextTail: () => string;

  /** @param tails another source of 12 hexadecimal digits, for tests that are to be repeated exactly */
  constructor({ at, sequence }: IdPosition, tails: () => string = nextTail) {
    this.#at = at;
    this.#sequence = sequence;
    this.#nextTail = tails;
  }

  get position(): IdPosition {
    return { at: this.#at, sequence: this.#sequence };
  }

  /** Whether the clock has stood still for so long that the ids of this instant run short. */
  get isRunningShort(): boolean {
    return this.#sequence >= SEQUENCE_COUNT / 2;
  }

  moveTo(at: Instant): void {
    assert(at >= this.#at, 'time never goes backwards');
    if (at > this.#at) this.#sequence = 0;
    this.#at = at;
  }

  next(): TransactionId {
    this.#sequence += 1;
    return transactionId({ at: this.#at, sequence: this.#sequence, tail: this.#nextTail() });
  }
}

function nextTail(): string {
  if (offset === pool.length) {
    randomFillSync(pool);
    offset = 0;
  }
  offset += TAIL_BYTES;
  return pool.toString('hex', offset - TAIL_BYTES, offset);
}
