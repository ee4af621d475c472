// Converts cycles and postings to rows and back.

import type { Cycle, CycleStatus, CycleType } from '../../../ledger/cycle.ts';
import type { Posting, PostingKind } from '../../../ledger/posting.ts';
import type { FeedPosting } from '../../feed.ts';
import { exactInteger, type Value } from '../pool/connection.ts';

export const CYCLE_COLUMNS = 'cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days';
export const CYCLE_TYPES = 'uuid integer text text bigint bigint bigint bigint integer'.split(' ');

/** SQL condition for cycles that are renewed, now or later. */
export const RENEWS = `type = 'recurring' AND status = 'active'`;

export const POSTING_COLUMNS =
  'transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor, note, cycle_type, validity_days';
/** The columns of a posting, followed by its end user. */
export const USER_POSTING_COLUMNS = `${POSTING_COLUMNS}, account, end_user`;
export const POSTING_TYPES = 'uuid uuid integer text bigint bigint bigint text text text integer'.split(' ');

/** SQL for columns, each prefixed with the table. */
export function columnsOf(table: string, columns: string): string {
  return columns.replaceAll(/\w+/g, `${table}.$&`);
}

/** Reads a 64-bit integer. The audit rounds integers that do not fit in a number; its rules then report them. */
export type ReadInteger = (column: Value | undefined) => number;

/** Reads a cycle as it is stored, without checking it. @param row begins with the columns of `CYCLE_COLUMNS` */
export function cycleOf(row: readonly Value[], integer: ReadInteger = exactInteger): Cycle {
  const [id, period, type, status, amount, remaining, start, end, validityDays] = row;
  return {
    id: id as string,
    period: Number(period),
    type: type as CycleType,
    status: status as CycleStatus,
    amount: integer(amount),
    remaining: integer(remaining),
    start: integer(start),
    end: integer(end),
    validityDays: Number(validityDays),
  };
}

/** @param row begins with the columns of `POSTING_COLUMNS` */
export function postingOf(row: readonly Value[], integer: ReadInteger = exactInteger): Posting {
  const [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, type, validityDays] = row;
  return {
    transactionId: transactionId as string,
    cycleId: cycleId as string,
    period: Number(period),
    kind: kind as PostingKind,
    amount: integer(amount),
    createdAt: integer(createdAt),
    expiresAt: integer(expiresAt),
    actor: actor as string,
    note: note as string | null,
    terms: type === null ? null : { type: type as CycleType, validityDays: Number(validityDays) },
  };
}

/** @param row of `USER_POSTING_COLUMNS` */
export function userPostingOf(row: readonly Value[], integer?: ReadInteger): FeedPosting {
  return { user: { account: Number(row.at(-2)), endUser: row.at(-1) as string }, posting: postingOf(row, integer) };
}

export function postingValues(posting: Posting): Value[] {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, terms } = posting;
  const opens = [terms?.type ?? null, terms?.validityDays ?? null];
  return [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, ...opens];
}
