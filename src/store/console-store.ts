// The port for the reads of the console. Each read is bounded and concerns one account. A cursor comes from a browser,
// so it is checked before it reaches a database.

import assert from 'node:assert/strict';
import type { Amount } from '../ledger/amount.ts';
import type { EndUserKey } from '../ledger/command.ts';
import type { CycleType } from '../ledger/cycle.ts';
import type { Recorded } from '../ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../ledger/instant.ts';
import type { Actor, Note, Posting, PostingKind, Transaction } from '../ledger/posting.ts';
import { transactionOf } from '../ledger/posting.ts';
import type { IdRange, TransactionId } from '../ledger/transaction-id.ts';
import type { EndUserPage, ListRequest } from './end-user-lists.ts';
import type { EndUserCounts } from './end-user-summaries.ts';
import type { LoadedEndUser, PageCursor } from './ledger-store.ts';
import { type DailyTotal, dayOf, type ExpiryTotal, hourOf } from './totals.ts';

/** The most rows of a page. */
export const PAGE_ROWS_MAX = 100;
/** The most postings that are read for one page of a history. */
export const HISTORY_POSTINGS_MAX = 5_000;
/** The most postings that are read for a chart; if there are more, the latest are read. */
export const CHART_POSTINGS_MAX = 2_000;
/** An end user with more live cycles has no chart. */
export const CHART_CYCLES_MAX = 2_000;
export const OVERVIEW_DAYS_MAX = 366;

/** A transaction with its note. Includes stops, which move no credits, to show who stopped a cycle and why. */
export interface RecordedTransaction extends Transaction {
  readonly note: Note | null;
}

/** The latest transaction of an end user. */
export interface AccountTransaction extends RecordedTransaction {
  readonly endUser: string;
}

export interface HistoryTransaction extends RecordedTransaction {
  /** The touched cycles, sorted by cycle and period. */
  readonly postings: readonly Pick<Posting, 'cycleId' | 'period' | 'amount'>[];
}

/** The type, amount and validity that a cycle was opened with. */
export interface Opening {
  readonly type: CycleType;
  readonly amount: Amount;
  readonly validityDays: number;
}

export interface HistoryRequest {
  readonly from: PageCursor | null;
  /** 1 to `PAGE_ROWS_MAX`. */
  readonly limit: number;
  /** Only transactions with ids in this range; all if absent. */
  readonly within?: IdRange;
  /** Only transactions of this kind; all if absent. */
  readonly kind?: PostingKind | undefined;
}

/** The caller adds the renewals that are due but not stored yet, as with `LedgerStore.transactions`. */
export interface HistoryPage extends LoadedEndUser {
  /** Latest first. If few transactions are of the requested kind, a page may be short although there is a next page. */
  readonly transactions: readonly HistoryTransaction[];
  readonly next: PageCursor | null;
  /** The openings of the cycles that these transactions touched, by cycle id. Only the cycles of `cyclesToName`. */
  readonly openings: ReadonlyMap<TransactionId, Opening>;
}

/** The data for a chart of the balance. */
export interface ChartHistory extends Recorded {
  readonly now: Instant;
  /** All postings from this instant on are included. */
  readonly since: Instant;
}

/** The credits of one day in UTC; today's up to now. */
export interface OverviewDay {
  /** The start of the day. */
  readonly day: Instant;
  readonly added: bigint;
  readonly started: bigint;
  readonly spent: bigint;
  /** Credits that were left in cycles at their end. An hour is counted once it is over. */
  readonly expired: bigint;
  readonly renewed: bigint;
  /** Additions, starts, subtractions and renewals. */
  readonly transactions: number;
}

/** Derived from the feed, so it is a second or two behind the ledger. */
export interface Overview {
  /** Everything up to this instant is counted. */
  readonly asOf: Instant;
  /** Accurate to the hour: credits that end within the current hour count until it is over. */
  readonly outstanding: bigint;
  /** Oldest first, today last. */
  readonly days: readonly OverviewDay[];
  /** The totals of each actor on these days, most transactions first. */
  readonly actors: readonly ActorTotal[];
}

export interface ActorTotal {
  readonly actor: Actor;
  /** Credits that were added, started and renewed. */
  readonly granted: bigint;
  readonly spent: bigint;
  readonly transactions: number;
}

export interface OverviewRequest {
  /** The number of days: 1 to `OVERVIEW_DAYS_MAX`. */
  readonly days: number;
  /** Counts only this actor in `days`; all actors if absent. Expired credits have no actor and are then not counted. */
  readonly actor?: Actor | undefined;
}

export interface ConsoleStore {
  /** Null if the account does not exist. */
  nameOf(account: number): Promise<string | null>;
  /** @throws InvalidCursor (rejects), or StoreFault, like the reads below */
  endUsers(account: number, request: ListRequest): Promise<EndUserPage>;
  endUserCounts(account: number): Promise<EndUserCounts>;
  /** The latest transactions of the end users that were active last, latest first. @param limit 1 to `PAGE_ROWS_MAX` */
  recent(account: number, limit: number): Promise<readonly AccountTransaction[]>;
  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage>;
  /**
   * The latest postings, at most `CHART_POSTINGS_MAX`. Null for an end user with more than `CHART_CYCLES_MAX` cycles.
   */
  chartHistory(user: EndUserKey, since: Instant): Promise<ChartHistory | null>;
  overview(account: number, request: OverviewRequest): Promise<Overview>;
}

export function assertLimit(limit: number): void {
  assert(Number.isInteger(limit) && limit >= 1 && limit <= PAGE_ROWS_MAX, 'a page has 1 to 100 rows');
}

/**
 * The most cycles that are named for a transaction and for a page. A transaction may have touched thousands of cycles.
 */
export const NAMED_CYCLES_MAX = 10;
const NAMED_PER_PAGE_MAX = 200;

/** The cycles that a page of a history shows by name, without duplicates. */
export function cyclesToName(transactions: readonly HistoryTransaction[]): readonly TransactionId[] {
  const ids = transactions.flatMap(({ postings }) => postings.slice(0, NAMED_CYCLES_MAX).map(({ cycleId }) => cycleId));
  return [...new Set(ids)].slice(0, NAMED_PER_PAGE_MAX);
}

/** Combines the postings of a transaction, with its note and the touched cycles. */
export function historyTransactionOf(postings: readonly [Posting, ...Posting[]]): HistoryTransaction {
  const touched = postings
    .map(({ cycleId, period, amount }) => ({ cycleId, period, amount }))
    .sort((a, b) => (a.cycleId < b.cycleId ? -1 : a.cycleId > b.cycleId ? 1 : a.period - b.period));
  return { ...transactionOf(postings), note: postings[0].note, postings: touched };
}

/**
 * Groups postings into transactions.
 *
 * @param postings the postings of a transaction are next to each other
 * @param idOf returns the transaction id of an entry
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

/** The first day and hour of the totals that an overview needs. */
export function overviewStart(now: Instant, days: number): { readonly firstDay: number; readonly firstHour: number } {
  assert(Number.isInteger(days) && days >= 1 && days <= OVERVIEW_DAYS_MAX, 'an overview is of 1 to 366 days');
  const firstDay = Math.max(0, dayOf(now) - days + 1);
  return { firstDay, firstHour: hourOf(firstDay * DAY_MS) };
}

type StoredDaily = Omit<DailyTotal, 'account'>;
type StoredExpiry = Pick<ExpiryTotal, 'hour' | 'credits'>;

/**
 * @param totals the totals of one account from `overviewStart` on, in any order; a day and kind may have several rows
 * @param now not before anything that the totals count
 */
export function overviewOf(
  totals: { readonly daily: Iterable<StoredDaily>; readonly expiries: Iterable<StoredExpiry> },
  { now, asOf }: { readonly now: Instant; readonly asOf: Instant },
  { days, actor: wanted }: OverviewRequest,
): Overview {
  const { firstDay } = overviewStart(now, days);
  const rows = Array.from({ length: dayOf(now) - firstDay + 1 }, (_, index) => emptyDay((firstDay + index) * DAY_MS));
  const actors = new Map<Actor, MutableActorTotal>();
  for (const { day, kind, actor, credits, transactions } of totals.daily) {
    const row = rows[day - firstDay];
    const column = kind === 'stop-cycle' ? undefined : COLUMNS[kind];
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

const COLUMNS = { add: 'added', 'start-cycle': 'started', renew: 'renewed', subtract: 'spent' } as const;

type MutableActorTotal = { -readonly [Name in keyof ActorTotal]: ActorTotal[Name] };
type MutableDay = { -readonly [Name in keyof OverviewDay]: OverviewDay[Name] };

function emptyDay(day: Instant): MutableDay {
  return { day, added: 0n, started: 0n, spent: 0n, expired: 0n, renewed: 0n, transactions: 0 };
}
