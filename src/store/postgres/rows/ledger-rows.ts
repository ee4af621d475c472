// Converts cycles, holds and postings to rows and back.

import type { Cycle, CycleStatus, CycleType } from '../../../ledger/cycle.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import type { Hold } from '../../../ledger/hold.ts';
import { planOfText, scheduledOfText } from '../../../ledger/plan.ts';
import { type Posting, type PostingKind, termsOfText, termsText } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { FeedPosting } from '../../feed.ts';
import { partsText } from '../../state-text.ts';
import { exactInteger, type Value } from '../pool/connection.ts';

export const CYCLE_COLUMNS = 'cycle_id, period, type, status, amount, remaining, held, starts_at, ends_at, plan, next';
export const CYCLE_TYPES = 'uuid integer text text bigint bigint bigint bigint bigint text text'.split(' ');

export const HOLD_COLUMNS = 'expires_at, hold_id, parts';
export const HOLD_TYPES = 'bigint uuid json'.split(' ');

/** SQL condition for active recurring cycles. */
export const RENEWS = `type = 'recurring' AND status = 'active'`;

/** The columns of a posting that are never null. */
export const PLAIN_COLUMNS = 'transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor';
export const PLAIN_TYPES = 'uuid uuid integer text bigint bigint bigint text'.split(' ');

export const POSTING_COLUMNS = `${PLAIN_COLUMNS}, note, terms, held, reference, hold_expires_at`;
/** The columns of a posting, followed by the account and the end user. */
export const USER_POSTING_COLUMNS = `${POSTING_COLUMNS}, account, end_user`;
const POSTING_TYPES = [...PLAIN_TYPES, ...'text text bigint uuid bigint'.split(' ')];

/**
 * The columns that an INSERT of postings sets. For the first posting of a transaction, the parameter for `line` is
 * null, and `INSERTED_VALUES` converts this null to 0.
 */
export const INSERTED_COLUMNS = `${POSTING_COLUMNS}, line`;
export const INSERTED_TYPES = [...POSTING_TYPES, 'integer'];
/** SQL that computes the values of `INSERTED_COLUMNS` from the columns of a row `k`. */
export const INSERTED_VALUES = `${columnsOf('k', POSTING_COLUMNS)}, coalesce(k.line, 0)`;

/**
 * Reads a 64-bit integer. Tools that must also read a damaged ledger, such as the audit, pass `Number`, which rounds
 * integers above 2^53−1 instead of failing.
 */
export type ReadInteger = (column: Value | undefined) => number;

/** Reads a cycle as it is stored, without checking it. @param row begins with the columns of `CYCLE_COLUMNS` */
export function cycleOf(row: readonly Value[], integer: ReadInteger = exactInteger): Cycle {
  const [id, period, type, status, amount, remaining, held, start, end, plan, next] = row;
  return {
    id: id as string,
    period: Number(period),
    type: type as CycleType,
    status: status as CycleStatus,
    amount: integer(amount),
    remaining: integer(remaining),
    held: integer(held),
    start: integer(start),
    end: integer(end),
    plan: planOfText(plan as string),
    next: scheduledOfText(next as string | null),
  };
}

export function holdValues({ id, expiresAt, parts }: Hold): Value[] {
  return [expiresAt, id, partsText(parts)];
}

/** @param row begins with the columns of `POSTING_COLUMNS` */
export function postingOf(row: readonly Value[], integer: ReadInteger = exactInteger): Posting {
  const [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, ...more] = row;
  const [terms, held, reference, holdExpiresAt] = more;
  return {
    transactionId: transactionId as string,
    cycleId: cycleId as string,
    period: Number(period),
    kind: kind as PostingKind,
    amount: integer(amount),
    held: held === null ? 0 : integer(held),
    createdAt: integer(createdAt),
    expiresAt: integer(expiresAt),
    actor: actor as string,
    note: note as string | null,
    terms: terms === null ? null : termsOfText(terms as string),
    reference: reference as string | null,
    holdExpiresAt: holdExpiresAt === null ? null : integer(holdExpiresAt),
  };
}

/** @param row the columns of `USER_POSTING_COLUMNS` */
export function userPostingOf(row: readonly Value[], integer?: ReadInteger): FeedPosting {
  return { user: { account: Number(row.at(-2)), endUser: row.at(-1) as string }, posting: postingOf(row, integer) };
}

/** @param line the position of the posting within its transaction, from 0 */
export function postingValues(posting: Posting, line: number): Value[] {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, terms } = posting;
  return [
    transactionId,
    cycleId,
    period,
    kind,
    amount,
    createdAt,
    expiresAt,
    actor,
    note,
    terms === null ? null : termsText(terms),
    HOLDING.has(kind) ? posting.held : null,
    posting.reference,
    posting.holdExpiresAt,
    line || null,
  ];
}

/** The kinds of postings that change held credits. In postings of other kinds, the `held` column is null. */
const HOLDING: ReadonlySet<PostingKind> = new Set(['hold', 'capture', 'release', 'lapse']);

/** @param postings the postings of the transaction `id` and of its refunds, in the order in which they were written */
export function referencedOf(postings: readonly Posting[], id: TransactionId): Referenced | null {
  const own = postings.filter(({ transactionId }) => transactionId === id);
  const refunds = postings.filter(({ transactionId }) => transactionId !== id);
  return own.length === 0 ? null : { postings: own, refunds };
}

/** Prefixes each column with the table. */
export function columnsOf(table: string, columns: string): string {
  return columns.replaceAll(/\w+/g, `${table}.$&`);
}
