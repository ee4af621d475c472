// Reads an end user's transactions: one page, or all transactions as CSV. Each read is bounded, so that long lists
// do not delay other requests.

import type { FastifyRequest } from 'fastify';
import type { EndUserKey } from '../../../ledger/command.ts';
import { periodAt, renews } from '../../../ledger/cycle.ts';
import { DAY_MS, INSTANT_MAX, type Instant } from '../../../ledger/instant.ts';
import { instantIn } from '../../../ledger/instant-text.ts';
import { dueLapses, dueRenewals } from '../../../ledger/settle.ts';
import { idsBetween } from '../../../ledger/transaction-id.ts';
import { laterFirst } from '../../../store/console-store.ts';
import { csvLine } from '../../../store/csv.ts';
import type { LedgerStore } from '../../../store/ledger-store.ts';
import type { LoadedEndUser, PageCursor } from '../../../store/loaded-end-user.ts';
import {
  type HistoryPage,
  type HistoryTransaction,
  heldChange,
  historyTransactionOf,
  passes,
  type HistoryFilter as StoreFilter,
} from '../../../store/transaction-history.ts';
import type { HistoryFilter } from '../../pages/end-user/history.ts';
import type { FormState } from '../../pages/form-field.ts';
import { type ActorView, actorText, KINDS } from '../../pages/lists.ts';
import { queryField } from '../../request-reply.ts';

const PAGE_TRANSACTIONS = 50;

interface ReadFilter {
  readonly filter: HistoryFilter;
  /** Null if there are errors. */
  readonly wanted: StoreFilter | null;
  readonly errors: FormState['errors'];
}

const DATE_ERROR = 'Enter a date, such as 2026-11-20.';
const REVERSED_ERROR = 'Enter a date that is not before “From”.';

export function readFilter(request: FastifyRequest): ReadFilter {
  const entered = { from: queryField(request, 'from'), to: queryField(request, 'to') };
  const [from, to] = [dayOf(entered.from), dayOf(entered.to)];
  const filter = {
    kind: queryField(request, 'kind'),
    note: queryField(request, 'note'),
    // A browser cannot show an invalid date in a date field.
    from: from === null ? '' : entered.from,
    to: to === null ? '' : entered.to,
  };
  const kind = KINDS.find((known) => known === filter.kind);
  const isReversed = typeof from === 'number' && typeof to === 'number' && to < from;
  const errors = {
    from: from === null ? DATE_ERROR : null,
    to: to === null ? DATE_ERROR : isReversed ? REVERSED_ERROR : null,
  };
  if (from === null || to === null || isReversed) return { filter, wanted: null, errors };
  const until = to === undefined ? INSTANT_MAX : Math.min(to + DAY_MS - 1, INSTANT_MAX);
  const wanted = {
    kinds: kind && [kind],
    notePrefix: filter.note || undefined,
    ...(from === undefined && to === undefined ? {} : { within: idsBetween(from ?? 0, until) }),
  };
  return { filter, wanted, errors };
}

/** What the page shows if the filter has errors. */
export const NO_HISTORY = { transactions: [], next: null, terms: new Map(), isStoringDue: false };

/** @returns the start of the day in UTC; undefined if `text` is empty; null if `text` is not a date */
function dayOf(text: string): Instant | undefined | null {
  if (text === '') return undefined;
  return instantIn(`${text}T00:00Z`);
}

/**
 * @param from null for the first page, which also includes due transactions that are not stored yet
 * @param dueMax the maximum number of these; enough for a page, because the renewal job stores them within seconds
 * @returns `isStoringDue`: whether more of these are due
 */
export async function readHistory(
  ledger: Pick<LedgerStore, 'history'>,
  user: EndUserKey,
  from: PageCursor | null,
  wanted: StoreFilter,
  dueMax = PAGE_TRANSACTIONS,
): Promise<Pick<HistoryPage, 'transactions' | 'next' | 'terms'> & { readonly isStoringDue: boolean }> {
  const page = await ledger.history(user, { from, limit: PAGE_TRANSACTIONS, ...wanted });
  const due = from === null ? dueTransactions(page, wanted, dueMax + 1) : [];
  const transactions = [...due.slice(0, dueMax), ...page.transactions];
  return { transactions, next: page.next, terms: termsOf(page), isStoringDue: due.length > dueMax };
}

/**
 * Returns the terms of the cycles on the page. Also returns the terms of the renewing cycle and of the cycle that is
 * active at `now`, because the page can show renewals and changes of plan that are due but not stored yet.
 */
function termsOf({ state, now, terms }: HistoryPage): HistoryPage['terms'] {
  const renewing = state.cycles.find(renews);
  if (renewing === undefined) return terms;
  const current = periodAt(renewing, now);
  return new Map([...terms, [renewing.id, renewing], [current.id, current]]);
}

/** Returns up to `max` due transactions that are not stored yet, latest first. */
function dueTransactions({ state, now }: LoadedEndUser, wanted: StoreFilter, max: number): HistoryTransaction[] {
  const renewals = dueRenewals(state, now).map((renewal) => historyTransactionOf([renewal]));
  const lapses = dueLapses(state, now).map((postings) => historyTransactionOf(postings));
  return [renewals, lapses]
    .flatMap((due) => [...due.filter((one) => isWanted(one, wanted)).take(max)])
    .sort(laterFirst)
    .slice(0, max);
}

function isWanted(transaction: HistoryTransaction, wanted: StoreFilter): boolean {
  const { id } = transaction;
  const { within } = wanted;
  return (within === undefined || (id >= within.first && id <= within.last)) && passes(transaction, wanted);
}

export async function* historyLines(
  ledger: Pick<LedgerStore, 'history'>,
  user: EndUserKey,
  wanted: StoreFilter,
  nameOf: (actor: string) => ActorView,
): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  for (let from: PageCursor | null = null, isMore = true; isMore; isMore = from !== null) {
    const page = await readHistory(ledger, user, from, wanted, Number.POSITIVE_INFINITY);
    yield page.transactions.map((one) => lineOf(one, nameOf)).join('');
    from = page.next;
  }
}

const COLUMNS = ['transaction_id', 'created_at', 'kind', 'amount', 'held', 'expires_at', 'reference', 'by', 'note'];

function lineOf(transaction: HistoryTransaction, nameOf: (actor: string) => ActorView): string {
  const { id, createdAt, kind, amount, expiresAt, reference, actor, note } = transaction;
  const [created, expires] = [createdAt, expiresAt].map((at) => new Date(at).toISOString()) as [string, string];
  const held = heldChange(transaction);
  return csvLine([id, created, kind, amount, held, expires, reference, actorText(nameOf(actor)), note]);
}
