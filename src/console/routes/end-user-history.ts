// Reads the history for the page of an end user: a page of transactions, optionally filtered, and the recent postings
// for the chart. Both reads are bounded, so that an end user with much activity does not delay other requests.

import type { FastifyRequest } from 'fastify';
import type { EndUserKey } from '../../ledger/command.ts';
import { periodAfter, periodsMissed, renews } from '../../ledger/cycle.ts';
import { DAY_MS, INSTANT_MAX, type Instant, isInstant } from '../../ledger/instant.ts';
import { renewalOf } from '../../ledger/next-event.ts';
import { idsBetween } from '../../ledger/transaction-id.ts';
import {
  type ConsoleStore,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
} from '../../store/console-store.ts';
import { csvLine } from '../../store/csv.ts';
import type { PageCursor } from '../../store/ledger-store.ts';
import { type BalanceOverTime, balanceOverTime } from '../charts/balance-chart.ts';
import type { HistoryFilter } from '../pages/end-user.ts';
import type { FormState } from '../pages/form-field.ts';
import { type ActorView, actorText, KINDS } from '../pages/lists.ts';
import { queryField } from '../request-reply.ts';

const PAGE_TRANSACTIONS = 50;

const CHART_PAST_DAYS = 30;
const CHART_FUTURE_DAYS = 31;

/** The filter of the transactions to read. */
export type HistoryRange = Pick<HistoryRequest, 'within' | 'kind'>;

export interface ReadFilter {
  readonly filter: HistoryFilter;
  /** Null if there are errors. */
  readonly range: HistoryRange | null;
  readonly errors: FormState['errors'];
}

const DATE_ERROR = 'Enter a date, such as 2026-11-20.';

export function readFilter(request: FastifyRequest): ReadFilter {
  const filter = {
    kind: queryField(request, 'kind'),
    from: queryField(request, 'from'),
    to: queryField(request, 'to'),
  };
  const kind = KINDS.find((known) => known === filter.kind);
  const [from, to] = [dayOf(filter.from), dayOf(filter.to)];
  const errors = { from: from === null ? DATE_ERROR : null, to: to === null ? DATE_ERROR : null };
  if (from === null || to === null) return { filter, range: null, errors };
  const within =
    from === undefined && to === undefined
      ? undefined
      : idsBetween(from ?? 0, to === undefined ? INSTANT_MAX : Math.min(to + DAY_MS - 1, INSTANT_MAX));
  return { filter, range: { kind, ...(within === undefined ? {} : { within }) }, errors };
}

/** Returns the start of a day; undefined if the text is empty, null if it is not a date. */
function dayOf(text: string): Instant | undefined | null {
  if (text === '') return undefined;
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return isInstant(at) ? at : null;
}

/** @param from null for the latest transactions, which include renewals that are due but not stored yet */
export async function readHistory(
  reads: ConsoleStore,
  user: EndUserKey,
  from: PageCursor | null,
  range: HistoryRange,
): Promise<Pick<HistoryPage, 'transactions' | 'next' | 'openings'>> {
  const page = await reads.history(user, { from, limit: PAGE_TRANSACTIONS, ...range });
  const due = from === null ? dueRenewals(page).filter((one) => isInRange(one, range)) : [];
  const renewing = page.state.cycles.find(renews);
  const openings = renewing === undefined ? page.openings : new Map([...page.openings, [renewing.id, renewing]]);
  return { transactions: [...due, ...page.transactions], next: page.next, openings };
}

/** Returns at most one page of due renewals. The renewal job stores the others within seconds. */
function dueRenewals({ state, now }: HistoryPage): HistoryTransaction[] {
  const renewing = state.cycles.find(renews);
  if (renewing === undefined) return [];
  const due = periodsMissed(renewing, now);
  return Array.from({ length: Math.min(due, PAGE_TRANSACTIONS) }, (_, index) =>
    historyTransactionOf([renewalOf(periodAfter(renewing, due - index))]),
  );
}

function isInRange({ id, kind }: HistoryTransaction, { within, kind: wanted }: HistoryRange): boolean {
  const isWithin = within === undefined || (id >= within.first && id <= within.last);
  return isWithin && (wanted === undefined || kind === wanted);
}

/** Yields all transactions of a range as lines of CSV, newest first. */
export async function* historyLines(
  reads: ConsoleStore,
  user: EndUserKey,
  range: HistoryRange,
  nameOf: (actor: string) => ActorView,
): AsyncGenerator<string> {
  yield csvLine(['transaction_id', 'created_at', 'kind', 'amount', 'expires_at', 'by', 'note']);
  for (let from: PageCursor | null = null, isMore = true; isMore; isMore = from !== null) {
    const page = await readHistory(reads, user, from, range);
    yield page.transactions.map((one) => lineOf(one, nameOf)).join('');
    from = page.next;
  }
}

function lineOf(transaction: HistoryTransaction, nameOf: (actor: string) => ActorView): string {
  const { id, createdAt, kind, amount, expiresAt, actor, note } = transaction;
  const [created, expires] = [createdAt, expiresAt].map((at) => new Date(at).toISOString()) as [string, string];
  return csvLine([id, created, kind, amount, expires, actorText(nameOf(actor)), note]);
}

export interface ChartData {
  /** Null if there are too many cycles to draw. */
  readonly balanceOverTime: BalanceOverTime | null;
  /** Whether the chart begins later than usual because there was too much activity to read. */
  readonly isPastCut: boolean;
}

export async function readChart(reads: ConsoleStore, user: EndUserKey, at: Instant): Promise<ChartData> {
  const wantedFrom = Math.max(at - CHART_PAST_DAYS * DAY_MS, 0);
  const history = await reads.chartHistory(user, wantedFrom);
  if (history === null) return { balanceOverTime: null, isPastCut: true };
  const { now, since } = history;
  const from = Math.min(Math.max(since, wantedFrom), now);
  return {
    balanceOverTime: balanceOverTime(history, { from, to: now + CHART_FUTURE_DAYS * DAY_MS }),
    isPastCut: since > wantedFrom,
  };
}
