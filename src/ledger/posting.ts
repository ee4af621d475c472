// A posting: the part of a transaction that touches one cycle. Postings are the record, and all else is a fold of them
// (`apply.ts`). A posting never changes and is never deleted.

import type { Cycle, CycleType } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { TransactionId } from './transaction-id.ts';

/**
 * What a posting records. `stop-cycle` moves no credits: it is recorded so that the ledger knows when a cycle was stopped
 * and by which actor. It is not a transaction and is not listed among them.
 */
export type PostingKind = 'add' | 'start-cycle' | 'renew' | 'subtract' | 'stop-cycle';

/** What caused it: `key:<id>` for an API key, `user:<id>` for a user of the console, `renewal` for time. */
export type Actor = string;

/** Why it was done: 1 to `NOTE_LENGTH_MAX` characters. */
export type Note = string;

/** In code points, as databases count. */
export const NOTE_LENGTH_MAX = 500;

export const RENEWAL_ACTOR: Actor = 'renewal';

/** What a posting says of the cycle, or the period, that it opens. The rest follows from the posting itself. */
export interface CycleTerms {
  readonly type: CycleType;
  readonly validityDays: number;
}

export interface Posting {
  readonly transactionId: TransactionId;
  readonly cycleId: TransactionId;
  readonly period: number;
  readonly kind: PostingKind;
  /** Positive where credits come in, negative where they are spent, 0 for a stop. */
  readonly amount: number;
  readonly createdAt: Instant;
  /** The end of the cycle: from then on this posting no longer affects the balance. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
  /** Null where no reason was given, and for renewals. */
  readonly note: Note | null;
  /** Null unless the posting opens a cycle or a period. */
  readonly terms: CycleTerms | null;
}

/** Whether every store can keep it as it is: databases end a text at U+0000, and have no half of a surrogate pair. */
export function isNote(note: string): boolean {
  // A string is at most twice as long as it has code points.
  if (note.length === 0 || note.length > 2 * NOTE_LENGTH_MAX) return false;
  if (note.includes('\0') || !note.isWellFormed()) return false;
  return note.length <= NOTE_LENGTH_MAX || [...note].length <= NOTE_LENGTH_MAX;
}

/** What the postings of one transaction have in common. */
export type Entry = Pick<Posting, 'transactionId' | 'kind' | 'createdAt' | 'actor' | 'note'>;

/** The posting that touches `cycle` by `amount`. */
export function postingTo(cycle: Cycle, amount: number, entry: Entry): Posting {
  return { ...entry, cycleId: cycle.id, period: cycle.period, amount, expiresAt: cycle.end, terms: null };
}

/** The posting that opens `cycle`, or the period that it is in. */
export function openingOf(cycle: Cycle, { transactionId, kind, actor, note }: Omit<Entry, 'createdAt'>): Posting {
  const { type, validityDays } = cycle;
  const entry = { transactionId, kind, createdAt: cycle.start, actor, note };
  return { ...postingTo(cycle, cycle.amount, entry), terms: { type, validityDays } };
}

/** One accepted request that moved credits, or one renewal: its postings as one. */
export interface Transaction {
  readonly id: TransactionId;
  readonly kind: PostingKind;
  readonly amount: number;
  readonly createdAt: Instant;
  /** The latest end among the cycles that it touched. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
}

/** The postings of one transaction as one. */
export function transactionOf([first, ...others]: readonly [Posting, ...Posting[]]): Transaction {
  let { amount, expiresAt } = first;
  for (const other of others) {
    amount += other.amount;
    expiresAt = Math.max(expiresAt, other.expiresAt);
  }
  const { transactionId: id, kind, createdAt, actor } = first;
  return { id, kind, amount, createdAt, expiresAt, actor };
}
