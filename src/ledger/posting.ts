// A posting: the part of a transaction that touches one cycle. Postings are never changed or deleted, and the rest of a
// ledger is a fold of its postings (`apply.ts`).

import type { Cycle, CycleType } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { TransactionId } from './transaction-id.ts';

/**
 * The kind of a posting. A `stop-cycle` moves no credits: it records when and by which actor a cycle was stopped, and
 * is not listed as a transaction.
 */
export type PostingKind = 'add' | 'start-cycle' | 'renew' | 'subtract' | 'stop-cycle';

/**
 * Who made a posting: `key:<id>` for an API key, `user:<id>` for a user of the console, `import:<id>` for an imported
 * file, or `renewal`.
 */
export type Actor = string;

/** Why a posting was made: 1 to `NOTE_LENGTH_MAX` characters. */
export type Note = string;

/** In code points, as databases count characters. */
export const NOTE_LENGTH_MAX = 500;

export const RENEWAL_ACTOR: Actor = 'renewal';

/** The type and validity of the cycle or period that a posting opens. Its other properties follow from the posting. */
export interface CycleTerms {
  readonly type: CycleType;
  readonly validityDays: number;
}

export interface Posting {
  readonly transactionId: TransactionId;
  readonly cycleId: TransactionId;
  readonly period: number;
  readonly kind: PostingKind;
  /** Positive if credits are granted, negative if they are spent, 0 for a stop. */
  readonly amount: number;
  readonly createdAt: Instant;
  /** The end of the cycle: from then on this posting no longer affects the balance. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
  /** Null if none was given, and for renewals. */
  readonly note: Note | null;
  /** Null unless the posting opens a cycle or a period. */
  readonly terms: CycleTerms | null;
}

/** Whether a text is a valid note. Databases cannot store U+0000 or half of a surrogate pair. */
export function isNote(note: string): boolean {
  // A string has at most two UTF-16 code units for each code point.
  if (note.length === 0 || note.length > 2 * NOTE_LENGTH_MAX) return false;
  if (note.includes('\0') || !note.isWellFormed()) return false;
  return note.length <= NOTE_LENGTH_MAX || [...note].length <= NOTE_LENGTH_MAX;
}

/** The fields that all postings of a transaction have in common. */
export type Entry = Pick<Posting, 'transactionId' | 'kind' | 'createdAt' | 'actor' | 'note'>;

/** A posting that changes `cycle` by `amount`. */
export function postingTo(cycle: Cycle, amount: number, entry: Entry): Posting {
  return { ...entry, cycleId: cycle.id, period: cycle.period, amount, expiresAt: cycle.end, terms: null };
}

/** The posting that opens `cycle` or its current period. */
export function openingOf(cycle: Cycle, { transactionId, kind, actor, note }: Omit<Entry, 'createdAt'>): Posting {
  const { type, validityDays } = cycle;
  const entry = { transactionId, kind, createdAt: cycle.start, actor, note };
  return { ...postingTo(cycle, cycle.amount, entry), terms: { type, validityDays } };
}

/** One accepted request that moved credits, or one renewal: the sum of its postings. */
export interface Transaction {
  readonly id: TransactionId;
  readonly kind: PostingKind;
  readonly amount: number;
  readonly createdAt: Instant;
  /** The latest end of the cycles that it touched. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
}

/** Combines the postings of a transaction. */
export function transactionOf([first, ...others]: readonly [Posting, ...Posting[]]): Transaction {
  let { amount, expiresAt } = first;
  for (const other of others) {
    amount += other.amount;
    expiresAt = Math.max(expiresAt, other.expiresAt);
  }
  const { transactionId: id, kind, createdAt, actor } = first;
  return { id, kind, amount, createdAt, expiresAt, actor };
}
