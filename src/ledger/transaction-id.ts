// The identifier of a transaction: a UUID that reads as version 4, with time in its leading bits so that the ids of
// one end user sort by creation (the COMB technique).
//
//   tttttttt-tttt-4sss-vsss-rrrrrrrrrrrr
//   t: 48 bits, the instant · 4, v: what RFC 9562 asks of version 4 · s: 26 bits, the sequence · r: 48 bits, the tail
//
// The sequence orders what happens within a millisecond. Sequence 0 belongs to renewals: a cycle renews at an instant
// before anything else happens there. A renewal takes its tail from its cycle, so that its id is known before it is
// stored, in every process.

import assert from 'node:assert/strict';
import { INSTANT_MAX, type Instant } from './instant.ts';

/** 36 lower-case characters. */
export type TransactionId = string;

/** One more than the largest sequence within one millisecond. */
export const SEQUENCE_COUNT = 2 ** 26;

/** Of every renewal, and of no other transaction. */
export const RENEWAL_SEQUENCE = 0;

const SEQUENCE_LOW_BITS = 14;
const SEQUENCE_LOW_MASK = 2 ** SEQUENCE_LOW_BITS - 1;
const VARIANT = 0x8000;

/** @param tail 12 lower-case hexadecimal digits, random but for renewals */
export function transactionId({ at, sequence, tail }: { at: Instant; sequence: number; tail: string }): TransactionId {
  assert(sequence >= 0 && sequence < SEQUENCE_COUNT, 'the sequence fits its 26 bits');
  assert(tail.length === 12, 'the tail fills the last group');
  const high = (sequence >>> SEQUENCE_LOW_BITS).toString(16).padStart(3, '0');
  const low = (VARIANT | (sequence & SEQUENCE_LOW_MASK)).toString(16);
  return `${timeDigits(at)}-4${high}-${low}-${tail}`;
}

let latest = { at: 0, digits: '00000000-0000' };

/** Those of a batch have their instant in common. */
function timeDigits(at: Instant): string {
  if (latest.at === at) return latest.digits;
  const time = at.toString(16).padStart(12, '0');
  assert(at <= INSTANT_MAX && /^[0-9a-f]{12}$/.test(time), 'a transaction happens at an instant');
  latest = { at, digits: `${time.slice(0, 8)}-${time.slice(8)}` };
  return latest.digits;
}

/** The renewal of the cycle `cycleId` at `at` has this id in every process, now and later. */
export function renewalId(cycleId: TransactionId, at: Instant): TransactionId {
  return transactionId({ at, sequence: RENEWAL_SEQUENCE, tail: cycleId.slice(24) });
}

/** Ids from the first to the last, both included. */
export interface IdRange {
  readonly first: TransactionId;
  readonly last: TransactionId;
}

/** No id of this instant or a later one sorts before it. */
export function firstIdAt(at: Instant): TransactionId {
  return transactionId({ at, sequence: 0, tail: '0'.repeat(12) });
}

/** No id of this instant or an earlier one sorts after it. */
export function lastIdAt(at: Instant): TransactionId {
  return transactionId({ at, sequence: SEQUENCE_COUNT - 1, tail: 'f'.repeat(12) });
}

/** The ids of everything that can happen from `from` to `until`, both included. */
export function idsBetween(from: Instant, until: Instant): IdRange {
  return { first: firstIdAt(from), last: lastIdAt(until) };
}

/** When the transaction happened: its leading 48 bits. */
export function instantOf(id: TransactionId): Instant {
  return Number.parseInt(id.slice(0, 8), 16) * 2 ** 16 + Number.parseInt(id.slice(9, 13), 16);
}

/** Its place among those of the same instant. */
export function sequenceOf(id: TransactionId): number {
  const high = Number.parseInt(id.slice(15, 18), 16);
  const low = Number.parseInt(id.slice(19, 23), 16) & SEQUENCE_LOW_MASK;
  return (high << SEQUENCE_LOW_BITS) | low;
}
