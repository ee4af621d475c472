// The interface through which the console reads a store. Each read covers one account and is bounded in size. Cursors
// come from browsers, so they are checked before they reach a database.

import assert from 'node:assert/strict';
import { DAY_MS, HOUR_MS, type Instant } from '../ledger/instant.ts';
import type { Actor, PostingKind, Transaction } from '../ledger/posting.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import type { EndUserPage, ListRequest } from './end-user-lists.ts';
import type { EndUserCounts } from './end-user-summaries.ts';
import { type DailyTotal, dayOf, type ExpiryTotal, hourOf } from './totals.ts';
import { type HistoryTransaction, PAGE_ROWS_MAX } from './transaction-history.ts';

const OVERVIEW_DAYS_MAX = 366;

export interface AccountTransaction extends Transaction, Pick<HistoryTransaction, 'postings'> {
  readonly endUser: string;
}

/** The totals of one day in UTC; for the current day, the totals so far. */
export interface OverviewDay {
  /** The start of the day. */
  readonly day: Instant;
  readonly added: bigint;
  readonly started: bigint;
  /** Credits that were spent, minus refunds. */
  readonly spent: bigint;
  /**
   * Credits that were left at the end of a cycle or period and did not roll over. They are counted at the end of the
   * hour in which the cycle or period ends.
   */
  readonly expired: bigint;
  /** Credits granted by renewals and scheduled plans, without the credits that rolled over. */
  readonly renewed: bigint;
  /** The number of transactions of all kinds except `schedule-plan`, `stop-cycle`, `hold`, `release` and `lapse`. */
  readonly transactions: number;
}

/** The overview is derived from the feed, so it lags behind the ledger by a second or two, and by more under load. */
export interface Overview {
  /** The overview includes everything up to this instant, except batches that were being committed during the read. */
  readonly asOf: Instant;
  /**
   * The credits that are neither spent nor expired, accurate to the hour: credits that expire within the current hour
   * count until the hour is over.
   */
  readonly outstanding: bigint;
  /** Oldest first, today last. */
  readonly days: readonly OverviewDay[];
  /** The totals of each actor over all of `days`. The actor with the most transactions comes first. */
  readonly actors: readonly ActorTotal[];
}

export interface ActorTotal {
  readonly actor: Actor;
  /** Credits granted by additions, cycle starts, renewals and scheduled plans. */
  readonly granted: bigint;
  readonly spent: bigint;
  readonly transactions: number;
}

export interface OverviewRequest {
  /** 1 to `OVERVIEW_DAYS_MAX`. */
  readonly days: number;
  /**
   * If present, the days of the overview count only the transactions of this actor. In that case, `expired` is 0,
   * because an expiry has no actor.
   */
  readonly actor?: Actor | undefined;
}

/** A read that fails rejects with `StoreFault`. */
export interface ConsoleStore {
  /** Null if the account does not exist. */
  nameOf(account: number): Promise<string | null>;
  /** @throws InvalidCursor (rejects) */
  endUsers(account: number, request: ListRequest): Promise<EndUserPage>;
  endUserCounts(account: number): Promise<EndUserCounts>;
  /**
   * Returns the latest transaction of each of the most recently active end users. The most recently active one comes
   * first.
   *
   * @param limit 1 to `PAGE_ROWS_MAX`
   */
  recent(account: number, limit: number): Promise<readonly AccountTransaction[]>;
  overview(account: number, request: OverviewRequest): Promise<Overview>;
}

export function assertLimit(limit: number): void {
  assert(Number.isInteger(limit) && limit >= 1 && limit <= PAGE_ROWS_MAX, 'a page has 1 to 100 rows');
}

export function laterFirst(a: { readonly id: TransactionId }, b: { readonly id: TransactionId }): number {
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0;
}

/** The first day and hour of the totals that an overview needs. */
export function overviewStart(now: Instant, days: number): { readonly firstDay: number; readonly firstHour: number } {
  assert(Number.isInteger(days) && days >= 1 && days <= OVERVIEW_DAYS_MAX, 'an overview has 1 to 366 days');
  const firstDay = Math.max(0, dayOf(now) - days + 1);
  return { firstDay, firstHour: hourOf(firstDay * DAY_MS) };
}

/**
 * @param totals the totals of one account since `overviewStart`, in any order; several rows can have the same day and
 * kind
 * @param now an instant at or after all transactions in the totals
 */
export function overviewOf(
  totals: {
    readonly daily: Iterable<Omit<DailyTotal, 'account'>>;
    readonly expiries: Iterable<Omit<ExpiryTotal, 'account'>>;
  },
  { now, asOf }: { readonly now: Instant; readonly asOf: Instant },
  { days, actor: wanted }: OverviewRequest,
): Overview {
  const { firstDay } = overviewStart(now, days);
  const rows = Array.from({ length: dayOf(now) - firstDay + 1 }, (_, index) => emptyDay((firstDay + index) * DAY_MS));
  const actors = new Map<Actor, Mutable<ActorTotal>>();
  for (const { day, kind, actor, credits, transactions } of totals.daily) {
    const row = rows[day - firstDay];
    const column = COLUMNS[kind];
    if (row === undefined || column === undefined) continue;
    const of = actors.get(actor) ?? { actor, granted: 0n, spent: 0n, transactions: 0 };
    of[column === 'spent' ? 'spent' : 'granted'] += column === 'spent' ? -credits : credits;
    of.transactions += transactions;
    actors.set(actor, of);
    if (wanted !== undefined && actor !== wanted) continue;
    row[column] += column === 'spent' ? -credits : credits;
    row.transactions += transactions;
  }
  let outstanding = 0n;
  for (const { hour, credits } of totals.expiries) {
    const row = rows[dayOf(hour * HOUR_MS) - firstDay];
    if (hour >= hourOf(now)) outstanding += credits;
    else if (row !== undefined && wanted === undefined) row.expired += credits;
  }
  const busiestFirst = [...actors.values()].sort((a, b) => b.transactions - a.transactions);
  return { asOf, outstanding, days: rows, actors: busiestFirst };
}

type Column = 'added' | 'started' | 'renewed' | 'spent';

const COLUMNS: Partial<Record<PostingKind, Column>> = {
  add: 'added',
  'start-cycle': 'started',
  renew: 'renewed',
  'change-plan': 'renewed',
  subtract: 'spent',
  capture: 'spent',
  refund: 'spent',
};

type Mutable<Total> = { -readonly [Name in keyof Total]: Total[Name] };

function emptyDay(day: Instant): Mutable<OverviewDay> {
  return { day, added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n, transactions: 0 };
}
