// The port for what the console reads of an account and of its end users. Every read is of one account, and bounded. A
// cursor comes back from a browser, so it is checked before it reaches a database.

import assert from 'node:assert/strict';
import type { EndUserKey } from '../ledger/command.ts';
import type { Recorded } from '../ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../ledger/instant.ts';
import type { Note, Posting, Transaction } from '../ledger/posting.ts';
import { transactionOf } from '../ledger/posting.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import type { LoadedEndUser, PageCursor } from './ledger-store.ts';
import { type DailyTotal, dayOf, type ExpiryTotal, hourOf } from './totals.ts';

/** Rows of a page. */
export const PAGE_ROWS_MAX = 100;
/** Postings of one end user that are read for a chart; of more, the latest. */
export const CHART_POSTINGS_MAX = 2_000;
/** An end user with more live cycles has no chart. */
export const CHART_CYCLES_MAX = 2_000;
export const OVERVIEW_DAYS_MAX = 366;

export interface EndUserPage {
  /** In the order of their UUIDs. */
  readonly endUsers: readonly { readonly endUser: string; readonly latestActivity: Instant }[];
  /** Null when there are no more; else what to give as `after` for the next page. */
  readonly next: PageCursor | null;
}

export interface EndUserSearch {
  readonly after: PageCursor | null;
  /** How the UUIDs begin, in hexadecimal digits of either case, with or without hyphens; '' for all. */
  readonly prefix: string;
  /** 1 to `PAGE_ROWS_MAX`. */
  readonly limit: number;
}

/** Beside what moved credits, also the stops, of 0 credits: who stopped a cycle, and why. */
export interface RecordedTransaction extends Transaction {
  readonly note: Note | null;
}

/** One of any end user of the account. */
export interface AccountTransaction extends RecordedTransaction {
  readonly endUser: string;
}

export interface HistoryTransaction extends RecordedTransaction {
  /** The cycles that it touched, by cycle and period. */
  readonly postings: readonly Pick<Posting, 'cycleId' | 'period' | 'amount'>[];
}

export interface HistoryRequest {
  readonly from: PageCursor | null;
  /** 1 to `PAGE_ROWS_MAX`. */
  readonly limit: number;
}

/** What is due and not stored yet is for the reader to put before, as with `LedgerStore.transactions`. */
export interface HistoryPage extends LoadedEndUser {
  /** Latest first. */
  readonly transactions: readonly HistoryTransaction[];
  readonly next: PageCursor | null;
}

/** What a chart of the balance is drawn from. */
export interface ChartHistory extends Recorded {
  readonly now: Instant;
  /** From this instant on all postings are there. */
  readonly since: Instant;
}

/** Credits of one day in UTC; of a day that is not over, so far. */
export interface OverviewDay {
  /** When it begins. */
  readonly day: Instant;
  readonly added: bigint;
  readonly started: bigint;
  readonly spent: bigint;
  /** What was left in cycles when they ended; of the hours that are over. */
  readonly expired: bigint;
  readonly renewed: bigint;
  /** Additions, starts, subtractions and renewals. */
  readonly transactions: number;
}

/** Derived from the feed, so it is a second or two behind the ledger. */
export interface Overview {
  /** Everything up to this instant is counted. */
  readonly asOf: Instant;
  /** To the hour: credits that end within the present hour count until it is over. */
  readonly outstanding: bigint;
  /** Oldest first, today last. */
  readonly days: readonly OverviewDay[];
}

export interface ConsoleStore {
  /** Null when there is no such account. */
  nameOf(account: number): Promise<string | null>;
  /** @throws InvalidCursor (rejects), or StoreFault, as do the reads below */
  endUsers(account: number, search: EndUserSearch): Promise<EndUserPage>;
  /** The latest of all end users, latest first. @param limit 1 to `PAGE_ROWS_MAX` */
  recent(account: number, limit: number): Promise<readonly AccountTransaction[]>;
  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage>;
  /** At most `CHART_POSTINGS_MAX` postings, the latest. Null for an end user with too many cycles. */
  chartHistory(user: EndUserKey, since: Instant): Promise<ChartHistory | null>;
  /** @param days how many, 1 to `OVERVIEW_DAYS_MAX` */
  overview(account: number, request: { readonly days: number }): Promise<Overview>;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/**
 * The first and the last UUID that begin with `prefix`.
 *
 * @returns null when none does
 */
export function uuidsWithPrefix(prefix: string): { readonly first: string; readonly last: string } | null {
  const digits = prefix.toLowerCase().replaceAll('-', '');
  if (!/^[0-9a-f]{0,32}$/.test(digits)) return null;
  const uuid = (filler: string) =>
    digits.padEnd(32, filler).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { first: uuid('0'), last: uuid('f') };
}

export function assertLimit(limit: number): void {
  assert(Number.isInteger(limit) && limit >= 1 && limit <= PAGE_ROWS_MAX, 'a page has 1 to 100 rows');
}

/** The postings of one transaction as one, with all that is recorded of it. */
export function historyTransactionOf(postings: readonly [Posting, ...Posting[]]): HistoryTransaction {
  const touched = postings
    .map(({ cycleId, period, amount }) => ({ cycleId, period, amount }))
    .sort((a, b) => (a.cycleId < b.cycleId ? -1 : a.cycleId > b.cycleId ? 1 : a.period - b.period));
  return { ...transactionOf(postings), note: postings[0].note, postings: touched };
}

/**
 * Gathers postings into transactions.
 *
 * @param postings those of a transaction side by side
 * @param idOf tells the transactions apart
 */
export function* wholeTransactions<Entry>(
  postings: Iterable<Entry>,
  idOf: (entry: Entry) => string,
): Generator<[Entry, ...Entry[]]> {
  let current: [Entry, ...Entry[]] | null = null;
  for (const entry of postings) {
    if (current !== null && idOf(current[0]) === idOf(entry)) {
      current.push(entry);
      continue;
    }
    if (current !== null) yield current;
    current = [entry];
  }
  if (current !== null) yield current;
}

export function laterFirst(a: { readonly id: TransactionId }, b: { readonly id: TransactionId }): number {
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0;
}

/** The first day and hour whose totals an overview needs. */
export function overviewStart(now: Instant, days: number): { readonly firstDay: number; readonly firstHour: number } {
  assert(Number.isInteger(days) && days >= 1 && days <= OVERVIEW_DAYS_MAX, 'an overview is of 1 to 366 days');
  const firstDay = Math.max(0, dayOf(now) - days + 1);
  return { firstDay, firstHour: hourOf(firstDay * DAY_MS) };
}

type StoredDaily = Pick<DailyTotal, 'day' | 'kind' | 'credits' | 'transactions'>;
type StoredExpiry = Pick<ExpiryTotal, 'hour' | 'credits'>;

/**
 * @param totals of one account, from `overviewStart` on, in any order, several of a day and kind or one
 * @param now not before anything that they count
 */
export function overviewOf(
  totals: { readonly daily: Iterable<StoredDaily>; readonly expiries: Iterable<StoredExpiry> },
  { now, asOf }: { readonly now: Instant; readonly asOf: Instant },
  days: number,
): Overview {
  const { firstDay } = overviewStart(now, days);
  const rows = Array.from({ length: dayOf(now) - firstDay + 1 }, (_, index) => emptyDay((firstDay + index) * DAY_MS));
  for (const { day, kind, credits, transactions } of totals.daily) {
    const row = rows[day - firstDay];
    const column = kind === 'stop-cycle' ? undefined : COLUMNS[kind];
    if (row === undefined || column === undefined) continue;
    row[column] += column === 'spent' ? -credits : credits;
    row.transactions += transactions;
  }
  let outstanding = 0n;
  for (const { hour, credits } of totals.expiries) {
    const row = rows[dayOf(hour * HOUR_MS) - firstDay];
    if (hour >= hourOf(now)) outstanding += credits;
    else if (row !== undefined) row.expired += credits;
  }
  return { asOf, outstanding, days: rows };
}

const COLUMNS = { add: 'added', 'start-cycle': 'started', renew: 'renewed', subtract: 'spent' } as const;

type MutableDay = { -readonly [Name in keyof OverviewDay]: OverviewDay[Name] };

function emptyDay(day: Instant): MutableDay {
  return { day, added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n, transactions: 0 };
}
