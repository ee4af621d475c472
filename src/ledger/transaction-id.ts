// The ID of a transaction: a valid version 4 UUID with the time in its leading bits (the COMB technique), so that the
// transaction IDs of an end user sort by creation time.
//
//   tttttttt-tttt-4sss-vsss-rrrrrrrrrrrr
//   t: 48 bits, the instant · 4, v: version and variant of RFC 9562 · s: 26 bits, the sequence number
//   r: 48 bits, the tail
//
// The sequence number orders the transactions within a millisecond. It is 0 for renewals and changes of plan, and 1 for
// lapses of holds, so these events sort before all requests of the same instant. The tails of their IDs are derived
// from the cycle, the plan or the hold, so every process computes the same IDs.

import assert from 'node:assert/strict';
import { type Instant, isInstant } from './instant.ts';

/** 36 lower-case characters. */
export type TransactionId = string;

/** The number of possible sequence numbers within one millisecond. */
export const SEQUENCE_COUNT = 2 ** 26;

/** The sequence number of every renewal and change of plan, and of no other transaction. */
export const RENEWAL_SEQUENCE = 0;
/** The sequence number of every lapse of a hold, and of no other transaction. */
export const LAPSE_SEQUENCE = 1;
/** The lowest sequence number of a transaction that a request causes. */
export const FIRST_SEQUENCE = 2;

const SEQUENCE_LOW_BITS = 14;
const SEQUENCE_LOW_MASK = 2 ** SEQUENCE_LOW_BITS - 1;
const VARIANT = 0x8000;
const ZERO = '0'.charCodeAt(0);
const A = 'a'.charCodeAt(0);

/** The instant of the latest ID, and the beginning of the ID: most IDs have the same instant as the previous one. */
let latestAt: Instant = -1;
let latestBeginning = '';

/** @param tail 12 lower-case hexadecimal digits: random for a request, derived for an automatic event */
export function transactionId({ at, sequence, tail }: { at: Instant; sequence: number; tail: string }): TransactionId {
  assert(sequence >= 0 && sequence < SEQUENCE_COUNT, 'the sequence number fits into 26 bits');
  assert(tail.length === 12, 'the tail has 12 digits, as many as the last group of a UUID');
  assert(isInstant(at), 'the instant of a transaction is valid');
  if (at !== latestAt) {
    const time = at.toString(16).padStart(12, '0');
    latestBeginning = `${time.slice(0, 8)}-${time.slice(8)}-4`;
    latestAt = at;
  }
  const high = (sequence >>> SEQUENCE_LOW_BITS).toString(16).padStart(3, '0');
  const low = (VARIANT | (sequence & SEQUENCE_LOW_MASK)).toString(16);
  return `${latestBeginning}${high}-${low}-${tail}`;
}

/**
 * The ID of the transaction that renews the cycle `cycleId` at the instant `at`. For a change of plan, `cycleId` is the
 * ID of the transaction that scheduled the plan. Every process computes the same ID.
 */
export function renewalId(cycleId: TransactionId, at: Instant): TransactionId {
  return transactionId({ at, sequence: RENEWAL_SEQUENCE, tail: cycleId.slice(24) });
}

/** A range of IDs, both ends included. */
export interface IdRange {
  readonly first: TransactionId;
  readonly last: TransactionId;
}

export function firstIdAt(at: Instant): TransactionId {
  return transactionId({ at, sequence: 0, tail: '0'.repeat(12) });
}

export function lastIdAt(at: Instant): TransactionId {
  return transactionId({ at, sequence: SEQUENCE_COUNT - 1, tail: 'f'.repeat(12) });
}

/** The range of all IDs from instant `from` to instant `until`, both included. */
export function idsBetween(from: Instant, until: Instant): IdRange {
  return { first: firstIdAt(from), last: lastIdAt(until) };
}

/** The instant in the leading 48 bits of an ID. */
export function instantOf(id: TransactionId): Instant {
  return hexNumber(id, 0, 8) * 2 ** 16 + hexNumber(id, 9, 13);
}

export function sequenceOf(id: TransactionId): number {
  const high = hexNumber(id, 15, 18);
  const low = hexNumber(id, 19, 23) & SEQUENCE_LOW_MASK;
  return (high << SEQUENCE_LOW_BITS) | low;
}

/** The number that lower-case hexadecimal digits represent. `Number.parseInt` takes several times as long. */
export function hexNumber(text: string, from: number, to: number): number {
  let number = 0;
  for (let index = from; index < to; index++) {
    const code = text.charCodeAt(index);
    number = number * 16 + (code < A ? code - ZERO : code - A + 10);
  }
  return number;
}
