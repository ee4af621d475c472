// Computes what the reads of the simulated store return, from one end user's postings.

import { applyAll } from '../../src/ledger/apply.ts';
import type { Referenced } from '../../src/ledger/decide-refund.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { type CycleTerms, isListed, isOpening, type Posting, transactionOf } from '../../src/ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../src/ledger/state.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import type { PageRequest, TransactionPage } from '../../src/store/ledger-store.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import {
  cyclesToName,
  type HistoryPage,
  type HistoryRequest,
  type HistoryTransaction,
  historyTransactionOf,
  passes,
  wholeTransactions,
} from '../../src/store/transaction-history.ts';

type Postings = readonly Posting[];

function isWanted(id: TransactionId, { from, within }: Pick<HistoryRequest, 'from' | 'within'>): boolean {
  if (within !== undefined && (id < within.first || id > within.last)) return false;
  return from === null || id < from;
}

export function transactionPageOf(postings: Postings, loaded: LoadedEndUser, request: PageRequest): TransactionPage {
  const found = [];
  for (const whole of wholeTransactions(backwards(postings, request), ({ transactionId }) => transactionId)) {
    const transaction = transactionOf(whole);
    if (!isListed(transaction.kind) || transaction.amount === 0) continue;
    if (found.push(transaction) > request.limit) break;
  }
  return { ...loaded, ...pageOf(found, request.limit) };
}

export function historyPageOf(postings: Postings, loaded: LoadedEndUser, request: HistoryRequest): HistoryPage {
  const found: HistoryTransaction[] = [];
  const refunds = Map.groupBy(
    postings.filter(({ kind }) => kind === 'refund'),
    ({ reference }) => reference,
  );
  for (const whole of wholeTransactions(backwards(postings, request), ({ transactionId }) => transactionId)) {
    const [{ transactionId }] = whole;
    const oldestFirst = whole.toReversed() as typeof whole;
    const transaction = historyTransactionOf(oldestFirst, refunds.get(transactionId));
    if (passes(transaction, request) && found.push(transaction) > request.limit) break;
  }
  const page = pageOf(found, request.limit);
  return { ...loaded, ...page, terms: termsOf(postings, cyclesToName(page.transactions)) };
}

function pageOf<Row extends { readonly id: TransactionId }>(found: readonly Row[], limit: number) {
  const transactions = found.slice(0, limit);
  return { transactions, next: found.length > limit ? (transactions.at(-1)?.id ?? null) : null };
}

function* backwards(postings: Postings, wanted: Parameters<typeof isWanted>[1]): Generator<Posting> {
  for (let index = postings.length - 1; index >= 0; index--) {
    const posting = postings[index] as Posting;
    if (isWanted(posting.transactionId, wanted)) yield posting;
  }
}

function termsOf(postings: Postings, cycles: readonly TransactionId[]): Map<TransactionId, CycleTerms> {
  const found = new Map<TransactionId, CycleTerms>();
  for (const posting of postings) {
    const { cycleId, period, terms } = posting;
    if (terms !== null && isOpening(posting) && period === 0 && cycles.includes(cycleId)) found.set(cycleId, terms);
  }
  return found;
}

export function referencedOf(postings: Postings, id: TransactionId): Referenced | null {
  const own = postings.filter(({ transactionId }) => transactionId === id);
  const refunds = postings.filter(({ kind, reference }) => kind === 'refund' && reference === id);
  return own.length === 0 ? null : { postings: own, refunds };
}

/** @param instants in ascending order */
export function statesOf(postings: Postings, instants: readonly Instant[]): readonly EndUserState[] {
  let state = EMPTY_STATE;
  let next = 0;
  return instants.map((at) => {
    const first = next;
    while (next < postings.length && (postings[next] as Posting).createdAt <= at) next += 1;
    state = applyAll(state, postings.slice(first, next));
    return liveState(state, at);
  });
}
