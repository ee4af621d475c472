// What the page of an end user reads of the past: a page of transactions, and for the chart the cycles and movements of
// the last days, as many as can be read without making others wait.

import type { EndUserKey } from '../../ledger/command.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import { renewalsDue } from '../../ledger/settle.ts';
import type { AccountReads, HistoryPage } from '../../store/account-reads.ts';
import type { PageCursor } from '../../store/loaded.ts';
import { type BalanceOverTime, balanceOverTime, type Movement } from '../charts/balance-over-time.ts';
import type { DoneBy } from '../pages/activity.ts';
import type { HistoryEntry } from '../pages/end-user.ts';

const PAGE_TRANSACTIONS = 50;

const CHART_PAST_DAYS = 30;
const CHART_FUTURE_DAYS = 31;
/** Rows that the store gives at a time, and how often it is asked: 2,000 transactions are 20 short reads. */
const CHART_PAGE_TRANSACTIONS = 100;
const CHART_PAGES_MAX = 20;
/** As many as the store gives. With more, the line would leave some out. */
const CHART_CYCLES_MAX = 2_000;

export interface History {
  readonly entries: readonly HistoryEntry[];
  readonly next: PageCursor | null;
}

/** @param from null for the latest, which are preceded by the renewals that are due and not stored yet */
export async function historyOf(
  reads: AccountReads,
  user: EndUserKey,
  { from, nameOf }: { from: PageCursor | null; nameOf: (actor: string) => DoneBy },
): Promise<History> {
  const page = await reads.history(user, { from, limit: PAGE_TRANSACTIONS, since: null });
  const stored = page.transactions.map(({ postings, ...transaction }) => ({
    ...transaction,
    touched: postings,
    by: nameOf(transaction.actor),
  }));
  return { entries: from === null ? [...dueIn(page, nameOf), ...stored] : stored, next: page.next };
}

/** The latest of them: the renewal clock enters the others within seconds. */
function dueIn({ cycles, now }: HistoryPage, nameOf: (actor: string) => DoneBy): HistoryEntry[] {
  return renewalsDue(cycles, now)
    .take(PAGE_TRANSACTIONS)
    .map((renewal) => {
      const renewing = cycles.find(({ type, status }) => type === 'recurring' && status === 'active');
      const touched = renewing === undefined ? [] : [renewedPeriod(renewing, renewal)];
      return { ...renewal, note: null, touched, by: nameOf(renewal.actor) };
    })
    .toArray();
}

function renewedPeriod(
  { id, period, end, validityDays }: HistoryPage['cycles'][number],
  { createdAt, amount }: { readonly createdAt: Instant; readonly amount: number },
): HistoryEntry['touched'][number] {
  return { cycleId: id, period: period + 1 + (createdAt - end) / (validityDays * DAY_MS), amount };
}

export interface Chart {
  /** Null when there is more than a line can show. */
  readonly overTime: BalanceOverTime | null;
  readonly isPastCut: boolean;
}

export async function chartOf(reads: AccountReads, user: EndUserKey, asked: Instant): Promise<Chart> {
  const wanted = Math.max(asked - CHART_PAST_DAYS * DAY_MS, 0);
  const { cycles, now } = await reads.cyclesSince(user, wanted);
  if (cycles.length >= CHART_CYCLES_MAX) return { overTime: null, isPastCut: true };
  const { movements, knownFrom } = await movementsOf(reads, user, { since: wanted, until: now });
  const range = { from: Math.min(knownFrom, now), to: now + CHART_FUTURE_DAYS * DAY_MS };
  return { overTime: balanceOverTime({ now, cycles, movements }, range), isPastCut: knownFrom > wanted };
}

/** What came after the cycles were read is left out: the cycles do not have it. */
async function movementsOf(
  reads: AccountReads,
  user: EndUserKey,
  { since, until }: { since: Instant; until: Instant },
): Promise<{ movements: Movement[]; knownFrom: Instant }> {
  const movements: Movement[] = [];
  let knownFrom = since;
  let from: PageCursor | null = null;
  for (let pages = 0; pages < CHART_PAGES_MAX; pages++) {
    const page: HistoryPage = await reads.history(user, { from, limit: CHART_PAGE_TRANSACTIONS, since });
    for (const { postings, createdAt } of page.transactions) {
      if (createdAt <= until) for (const posting of postings) movements.push({ ...posting, createdAt });
      knownFrom = createdAt;
    }
    if (page.next === null) return { movements, knownFrom: since };
    from = page.next;
  }
  return { movements, knownFrom };
}
