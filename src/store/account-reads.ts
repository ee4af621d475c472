// What the console reads of an account and of its end users, as part of the port. Every read is of one account, and
// bounded. Where a page goes on comes back from a browser, so it is looked at before it reaches a database.

import assert from 'node:assert/strict';
import type { EndUserKey } from '../ledger/command.ts';
import { DAY_MS, type Instant } from '../ledger/instant.ts';
import { dayOf, hourOf, SERIES, type Series, type Slot } from '../ledger/movement.ts';
import type { Note, Posting, Transaction } from '../ledger/posting.ts';
import { transactionOf } from '../ledger/posting.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';
import type { Loaded, PageCursor } from './loaded.ts';

/** Rows of a page. */
export const PAGE_ROWS_MAX = 100;
/** Cycles of one end user that are read for a chart; of more, those that end last. */
export const CHART_CYCLES_MAX = 2_000;
export const OVERVIEW_DAYS_MAX = 366;

/** A place to go on from that no page has given out, or that is of another end user. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor';

  constructor() {
    super('No page of this list ends there.');
  }
}

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
  /** What happened before is left out. */
  readonly since: Instant | null;
}

/** Renewals that are due and not yet stored are for the reader to put before, as with `transactions`. */
export interface HistoryPage extends Loaded {
  /** Latest first. */
  readonly transactions: readonly HistoryTransaction[];
  readonly next: PageCursor | null;
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

/** As stored: a renewal that is due counts once it is entered, which takes a second. */
export interface Overview {
  readonly asOf: Instant;
  /** To the hour: credits that end within the present hour count until it is over. */
  readonly outstanding: bigint;
  readonly endUsersWithCredits: number;
  /** Oldest first, today last. */
  readonly days: readonly OverviewDay[];
}

export interface AccountReads {
  /** Null when there is no such account. */
  nameOf(account: number): Promise<string | null>;
  /** @throws InvalidCursor (rejects), or StoreFault, as do the reads below */
  endUsers(account: number, search: EndUserSearch): Promise<EndUserPage>;
  /** The latest of all end users, latest first. @param limit 1 to `PAGE_ROWS_MAX` */
  recent(account: number, limit: number): Promise<readonly AccountTransaction[]>;
  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage>;
  /** The stored cycles that end after `since`, ended ones too, in burn order. At most `CHART_CYCLES_MAX`. */
  cyclesSince(user: EndUserKey, since: Instant): Promise<Loaded>;
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
export function uuidsOf(prefix: string): { readonly first: string; readonly last: string } | null {
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
 * @param postings those of a transaction one behind the other
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

/** The sum of movements that a store has stored. */
export interface StoredMovement {
  readonly series: Series;
  readonly slot: Slot;
  readonly credits: bigint;
  readonly count: number;
}

/** From which slots on an overview needs the movements: of the days, and of the hours. */
export function overviewSlots(now: Instant, days: number): { readonly firstDay: Slot; readonly firstHour: Slot } {
  assert(Number.isInteger(days) && days >= 1 && days <= OVERVIEW_DAYS_MAX, 'an overview is of 1 to 366 days');
  const firstDay = Math.max(0, dayOf(now) - days + 1);
  return { firstDay, firstHour: hourOf(firstDay * DAY_MS) };
}

/**
 * @param movements of one account, from `overviewSlots` on, in any order, several to a slot or one
 * @param now not before anything that they speak of
 */
export function overviewOf(movements: Iterable<StoredMovement>, now: Instant, days: number): Overview {
  const { firstDay } = overviewSlots(now, days);
  const present = hourOf(now);
  const rows = Array.from({ length: dayOf(now) - firstDay + 1 }, (_, index) => emptyDay((firstDay + index) * DAY_MS));
  let outstanding = 0n;
  let endUsersWithCredits = 0;
  for (const { series, slot, credits, count } of movements) {
    if (series === SERIES.held && slot >= present) {
      outstanding += credits;
      endUsersWithCredits += count;
      continue;
    }
    const day = series === SERIES.held ? Math.floor((slot * 3_600_000) / DAY_MS) : slot;
    const row = rows[day - firstDay];
    if (row === undefined) continue;
    const column = COLUMNS[series];
    row[column] += column === 'spent' ? -credits : credits;
    if (series !== SERIES.held) row.transactions += count;
  }
  return { asOf: now, outstanding, endUsersWithCredits, days: rows };
}

const COLUMNS = ['expired', 'added', 'started', 'renewed', 'spent'] as const satisfies Record<
  Series,
  keyof OverviewDay
>;

type MutableDay = { -readonly [Name in keyof OverviewDay]: OverviewDay[Name] };

function emptyDay(day: Instant): MutableDay {
  return { day, added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n, transactions: 0 };
}
