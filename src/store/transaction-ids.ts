// Issues transaction IDs in ascending order.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Instant } from '../ledger/instant.ts';
import {
  FIRST_SEQUENCE,
  LAPSE_SEQUENCE,
  SEQUENCE_COUNT,
  type TransactionId,
  transactionId,
} from '../ledger/transaction-id.ts';

const TAIL_DIGITS = 12;
const POOL_BYTES = 4_098;
/** Random hexadecimal digits, of which those before `offset` are used. */
let pool = '';
let offset = 0;

/** The position of the last issued transaction ID. */
export interface IdPosition {
  readonly at: Instant;
  /** Below `FIRST_SEQUENCE` if no ID has been issued for this instant yet. */
  readonly sequence: number;
}

/** Returns an ID that sorts after all IDs up to the given position, and before all later IDs. */
export function throughPosition({ at, sequence }: IdPosition): TransactionId {
  return transactionId({ at, sequence: Math.max(sequence, LAPSE_SEQUENCE), tail: 'ffffffffffff' });
}

export class TransactionIds {
  #at: Instant;
  #sequence: number;
  readonly #nextTail: () => string;

  /**
   * @param tails returns the last 12 hexadecimal digits of an ID; the digits are random, except in reproducible tests
   */
  constructor({ at, sequence }: IdPosition, tails: () => string = nextTail) {
    this.#at = at;
    this.#sequence = sequence;
    this.#nextTail = tails;
  }

  get position(): IdPosition {
    return { at: this.#at, sequence: this.#sequence };
  }

  /**
   * Whether at least half of the IDs of the current instant have been issued. This happens only if the clock stands
   * still.
   */
  get isRunningShort(): boolean {
    return this.#sequence >= SEQUENCE_COUNT / 2;
  }

  moveTo(at: Instant): void {
    assert(at >= this.#at, 'time never goes backwards');
    if (at > this.#at) this.#sequence = 0;
    this.#at = at;
  }

  next(): TransactionId {
    this.#sequence = Math.max(this.#sequence + 1, FIRST_SEQUENCE);
    return transactionId({ at: this.#at, sequence: this.#sequence, tail: this.#nextTail() });
  }
}

function nextTail(): string {
  if (offset === pool.length) {
    pool = randomBytes(POOL_BYTES).toString('hex');
    offset = 0;
  }
  offset += TAIL_DIGITS;
  return pool.slice(offset - TAIL_DIGITS, offset);
}
