// A posting: the part of a transaction that touches one cycle. Postings are the record; what remains in a cycle is
// their sum. A posting never changes and is never deleted.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { Instant } from './instant.ts';
import type { TransactionId } from './transaction-id.ts';

/**
 * What a posting records. `stop-cycle` moves no credits: it is there so that who stopped a cycle, and when, is kept as
 * firmly as any credit; it is not a transaction and is not listed among them.
 */
export type PostingKind = 'add' | 'start-cycle' | 'renew' | 'subtract' | 'stop-cycle';

/** Who did it: `key:<id>` of an API key, `user:<id>` of somebody at the console, or `renewal` for what time did. */
export type Actor = string;

/** Why it was done: 1 to `NOTE_LENGTH_MAX` characters. */
export type Note = string;

/** In code points, as databases count. */
export const NOTE_LENGTH_MAX = 500;

export const RENEWAL_ACTOR: Actor = 'renewal';

export interface Posting {
  readonly transactionId: TransactionId;
  readonly cycleId: TransactionId;
  readonly period: number;
  readonly kind: PostingKind;
  /** Positive where credits come in, negative where they are spent, 0 for a stop. */
  readonly amount: number;
  readonly createdAt: Instant;
  /** The end of the cycle: the instant after which this posting no longer bears on the balance. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
  /** Null for what came by the API, and for renewals. */
  readonly note: Note | null;
}

/** Whether every store can keep it as it is: databases end a text at U+0000, and have no half of a surrogate pair. */
export function isNote(note: string): boolean {
  // A string is at most twice as long as it has code points.
  if (note.length === 0 || note.length > 2 * NOTE_LENGTH_MAX) return false;
  if (note.includes('\0') || !note.isWellFormed()) return false;
  return note.length <= NOTE_LENGTH_MAX || [...note].length <= NOTE_LENGTH_MAX;
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

/** The posting that touches `cycle` by `amount` in the transaction `transactionId`. */
export function posting(
  cycle: Cycle,
  entry: {
    transactionId: TransactionId;
    kind: PostingKind;
    amount: Amount;
    createdAt: Instant;
    actor: Actor;
    note: Note | null;
  },
): Posting {
  return { ...entry, cycleId: cycle.id, period: cycle.period, expiresAt: cycle.end };
}

/** The posting with which a cycle, or a period of it, comes into being. */
export function openingOf(
  cycle: Cycle,
  entry: { transactionId: TransactionId; kind: PostingKind; actor: Actor; note: Note | null },
): Posting {
  return posting(cycle, { ...entry, amount: cycle.amount, createdAt: cycle.start });
}

/**
 * The postings of one transaction as one.
 *
 * @param first at least one posting, as are the others of the same transaction
 */
export function transactionOf([first, ...others]: readonly [Posting, ...Posting[]]): Transaction {
  let { amount, expiresAt } = first;
  for (const other of others) {
    amount += other.amount;
    expiresAt = Math.max(expiresAt, other.expiresAt);
  }
  return {
    id: first.transactionId,
    kind: first.kind,
    amount,
    createdAt: first.createdAt,
    expiresAt,
    actor: first.actor,
  };
}
