// What the page of an end user reads: a page of transactions, and for the chart the postings of the last days. Both are
// bounded, so that no end user delays the requests of others.

import type { EndUserKey } from '../../ledger/command.ts';
import { periodAfter, periodsMissed, renews } from '../../ledger/cycle.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import { renewalOf } from '../../ledger/next-event.ts';
import {
  type ConsoleStore,
  type HistoryPage,
  type HistoryTransaction,
  historyTransactionOf,
} from '../../store/console-store.ts';
import type { PageCursor } from '../../store/ledger-store.ts';
import { type BalanceOverTime, balanceOverTime } from '../charts/balance-chart.ts';

const PAGE_TRANSACTIONS = 50;

const CHART_PAST_DAYS = 30;
const CHART_FUTURE_DAYS = 31;

/** @param from null for the latest transactions, which include renewals that are due but not stored yet */
export async function readHistory(
  reads: ConsoleStore,
  user: EndUserKey,
  from: PageCursor | null,
): Promise<Pick<HistoryPage, 'transactions' | 'next'>> {
  const page = await reads.history(user, { from, limit: PAGE_TRANSACTIONS });
  const due = from === null ? dueRenewals(page) : [];
  return { transactions: [...due, ...page.transactions], next: page.next };
}

/** At most a page of them: the renewal job stores the others within seconds. */
function dueRenewals({ state, now }: HistoryPage): HistoryTransaction[] {
  const renewing = state.cycles.find(renews);
  if (renewing === undefined) return [];
  const due = periodsMissed(renewing, now);
  return Array.from({ length: Math.min(due, PAGE_TRANSACTIONS) }, (_, index) =>
    historyTransactionOf([renewalOf(periodAfter(renewing, due - index))]),
  );
}

export interface ChartData {
  /** Null when there are too many cycles to draw. */
  readonly balanceOverTime: BalanceOverTime | null;
  /** Whether the past begins later than wanted, since there was too much of it to read. */
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
