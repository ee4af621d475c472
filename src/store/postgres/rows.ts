// Rows to cycles and transactions, and the columns that they come from.

import assert from 'node:assert/strict';
import type { Cycle, CycleStatus, CycleType } from '../../ledger/cycle.ts';
import type { Posting, PostingKind, Transaction } from '../../ledger/posting.ts';
import type { TextRow } from './step.ts';

export interface CycleRow {
  account: number;
  end_user: string;
  cycle_id: string;
  period: number;
  type: CycleType;
  status: CycleStatus;
  amount: number;
  remaining: number;
  starts_at: number;
  ends_at: number;
  validity_days: number;
}

export interface PostingRow {
  account: number;
  end_user: string;
  transaction_id: string;
  cycle_id: string;
  period: number;
  kind: PostingKind;
  amount: number;
  created_at: number;
  expires_at: number;
  actor: string;
  note: string | null;
}

/** As stored, right or wrong: the audit wants to see it, all others check it. */
export function cycleOf(row: CycleRow): Cycle {
  return {
    id: row.cycle_id,
    period: row.period,
    type: row.type,
    status: row.status,
    amount: row.amount,
    remaining: row.remaining,
    start: row.starts_at,
    end: row.ends_at,
    validityDays: row.validity_days,
  };
}

/** @param columns those of `CYCLE` in `statements.ts`, as they are written out */
export function cycleOfText(columns: TextRow): Cycle {
  const [id, period, type, status, amount, remaining, start, end, validityDays] = columns as readonly string[];
  return {
    id: id as string,
    period: Number(period),
    type: type as CycleType,
    status: status as CycleStatus,
    amount: exactInteger(amount as string),
    remaining: exactInteger(remaining as string),
    start: exactInteger(start as string),
    end: exactInteger(end as string),
    validityDays: Number(validityDays),
  };
}

/** `bigint` columns hold what a number holds exactly, or the ledger stops. */
export function exactInteger(text: string): number {
  const value = Number(text);
  assert(Number.isSafeInteger(value), 'an integer of the ledger is within 2^53−1');
  return value;
}

export function postingOf(row: PostingRow): Posting {
  return {
    transactionId: row.transaction_id,
    cycleId: row.cycle_id,
    period: row.period,
    kind: row.kind,
    amount: row.amount,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    actor: row.actor,
    note: row.note,
  };
}

export function transactionOf(row: PostingRow): Transaction {
  const { transaction_id: id, kind, amount, created_at: createdAt, expires_at: expiresAt, actor } = row;
  return { id, kind, amount, createdAt, expiresAt, actor };
}
