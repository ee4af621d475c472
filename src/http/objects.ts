// Answers in the words of the interface. Timestamps are UTC in milliseconds and end in `Z`, but for `created_at` of a
// cycle object, which has no suffix. What is asked for most is written as text at once: a serializer escapes each string by
// itself, and there is nothing to escape in UUIDs, timestamps and our own words.

import type { Amount } from '../ledger/amount.ts';
import { type Cycle, createdAt } from '../ledger/cycle.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';

export interface CycleObject {
  end_user_id: string;
  amount: Amount;
  created_at: string;
  current_cycle_start: string;
  current_cycle_end: string;
  cycle_type: string;
  status: string;
}

export interface TransactionObject {
  transaction_id: string;
  amount: number;
  created_at: string;
  expire_at: string;
}

export function cycleObject(endUserId: string, cycle: Cycle): CycleObject {
  return {
    end_user_id: endUserId,
    amount: cycle.amount,
    created_at: timestamp(createdAt(cycle)).slice(0, -1),
    current_cycle_start: timestamp(cycle.start),
    current_cycle_end: timestamp(cycle.end),
    cycle_type: cycle.type,
    status: cycle.status,
  };
}

/** The answer to an addition or a subtraction. */
export function movedText(endUserId: string, amount: Amount): string {
  return `{"end_user_id":"${endUserId}","amount":${amount}}`;
}

/** @param cycles in burn order: all that have not ended */
export function balanceText(endUserId: string, cycles: readonly Cycle[], activeBalance: Amount): string {
  const entries = cycles.map(cycleEntryText).join(',');
  return `{"end_user_id":"${endUserId}","active_balance_by_cycle":[${entries}],"active_balance":${activeBalance}}`;
}

function cycleEntryText({ start, end, remaining, amount, status, type }: Cycle): string {
  return `{"cycle_start":"${timestamp(start)}","cycle_end":"${timestamp(end)}","amount":${remaining},"starting_amount":${amount},"status":"${status}","cycle_type":"${type}"}`;
}

/** One of a list, as a `TransactionObject`. */
export function transactionText({ id, amount, createdAt, expiresAt }: Transaction): string {
  return `{"transaction_id":"${id}","amount":${amount},"created_at":"${timestamp(createdAt)}","expire_at":"${timestamp(expiresAt)}"}`;
}

/** By day, how its timestamps begin. A list has few days beside its lines, and the library takes six times as long. */
const dates = new Map<number, string>();
const DATES_MAX = 4_096;
const SIXTY = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
const THOUSAND = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'));

/** As `toISOString` writes it. */
export function timestamp(instant: Instant): string {
  const day = Math.floor(instant / DAY_MS);
  const ms = instant - day * DAY_MS;
  const hour = Math.floor(ms / HOUR_MS);
  const minute = Math.floor(ms / 60_000) % 60;
  const second = Math.floor(ms / 1_000) % 60;
  return `${dateOf(day)}${SIXTY[hour]}:${SIXTY[minute]}:${SIXTY[second]}.${THOUSAND[ms % 1_000]}Z`;
}

/** With the letter that parts it from the time. */
function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  if (dates.size === DATES_MAX) dates.clear();
  const date = new Date(day * DAY_MS).toISOString().slice(0, '2026-11-20T'.length);
  dates.set(day, date);
  return date;
}
