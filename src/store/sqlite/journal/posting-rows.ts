// Converts rows of the journal into postings.

import type { SQLOutputValue } from 'node:sqlite';
import { type Posting, type PostingKind, termsOfText } from '../../../ledger/posting.ts';
import type { Row } from '../file/statements.ts';
import { uuidOf, uuidOfHex } from '../file/uuid.ts';

/** The columns that have a value in every posting. */
export const PLAIN_NAMES = 'transaction_id cycle_id period kind amount created_at expires_at actor'.split(' ');
/** The columns that keep their defaults in most postings. */
export const OTHER_NAMES = ['held', 'note', 'terms', 'reference', 'hold_expires_at'];

const NAMES = [...PLAIN_NAMES, ...OTHER_NAMES];
export const POSTING_COLUMN_COUNT = NAMES.length;

/**
 * Returns the columns of a posting for a SELECT. `transaction_id` and `cycle_id` are read as hexadecimal digits,
 * because reading blobs would create arrays outside of V8's heap.
 */
export function postingColumns(table: string): string {
  return NAMES.map((name) => (name.endsWith('_id') ? `hex(${table}.${name})` : `${table}.${name}`)).join(', ');
}

/** @param row begins with the columns of `postingColumns`; the IDs can also be blobs */
export function postingOf(row: Row): Posting {
  const [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, ...others] = row;
  const [held, note, terms, reference, holdExpiresAt] = others;
  return {
    transactionId: uuidIn(transactionId),
    cycleId: uuidIn(cycleId),
    period: Number(period),
    kind: kind as PostingKind,
    amount: Number(amount),
    held: Number(held),
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    actor: actor as string,
    note: note as string | null,
    terms: terms === null ? null : termsOfText(terms as string),
    reference: reference === null ? null : uuidIn(reference),
    holdExpiresAt: holdExpiresAt === null ? null : Number(holdExpiresAt),
  };
}

function uuidIn(value: SQLOutputValue | undefined): string {
  return typeof value === 'string' ? uuidOfHex(value) : uuidOf(value as Uint8Array);
}
