// The transactions of an end user as a JSON document: all of them, however many there are, written a piece at a time as
// the client reads, so that memory stays flat; or one page.

import { Readable } from 'node:stream';
import { INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import { renewalsDue, renewalsDueCount } from '../ledger/settle.ts';
import { type IdRange, idsBetween, instantOf } from '../ledger/transaction-id.ts';
import type { Store, TransactionPage } from '../store/store.ts';
import type { ListRequest, PageAsked } from './list-request.ts';
import { transactionText } from './objects.ts';
import { strangeCursor, writeCursor } from './page-cursor.ts';

/** Large enough that a read of the store costs more than asking for it, small enough to hold up nothing else. */
export const READ_TRANSACTIONS = 500;

/** Which transactions are wanted: two bounds on their time, and those on their ids that follow from them. */
interface Bounds {
  readonly from: Instant;
  /** The last instant that is wanted. */
  readonly until: Instant;
  readonly ids: IdRange;
}

/** @returns the document itself when it is a page or fits one read, else a stream of it */
export async function transactionList(store: Store, request: ListRequest): Promise<string | Readable> {
  if (request.page !== null) return pageOf(store, request, request.page);
  const bounds = boundsOf(request);
  if (bounds === null) return `${headOf(request)}]}`;
  const first = await read(store, request, bounds, READ_TRANSACTIONS);
  const document = documentOf(request, transactionsOf(store, request, bounds, first));
  const due = renewalsDueCount(first.cycles, Math.min(first.now, bounds.until));
  if (first.next !== null || due > READ_TRANSACTIONS) return Readable.from(document);
  return (await Array.fromAsync(document)).join('');
}

/**
 * A page begins with the transaction that was listed last, which is then left out: a cursor whose transaction is not there
 * comes from elsewhere. One more than the page holds is read to learn whether there are more.
 */
async function pageOf(store: Store, request: ListRequest, { limit, after }: PageAsked): Promise<string> {
  const bounds = boundsOf(request);
  const wanted = limit + (after === null ? 1 : 2);
  const found: Transaction[] = [];
  if (bounds !== null) {
    const first = await read(store, request, bounds, Math.min(wanted, READ_TRANSACTIONS));
    for await (const transactions of transactionsOf(store, request, bounds, first)) {
      for (const transaction of transactions) found.push(transaction);
      if (found.length >= wanted) break;
    }
  }
  if (after !== null && found.shift()?.id !== after) throw strangeCursor();
  const listed = found.slice(0, limit);
  const last = found.length > limit ? listed.at(-1) : undefined;
  const cursor = last && writeCursor({ last: last.id, from: request.from, to: request.to }, request.user);
  return `${headOf(request)}${textOf(listed)}],"next_cursor":${cursor ? `"${cursor}"` : null}}`;
}

/** @returns null when no transaction can be within them */
function boundsOf({ from, to, page }: ListRequest): Bounds | null {
  const earliest = from ?? 0;
  const before = (to ?? INSTANT_MAX + 1) - 1;
  if (before < earliest) return null;
  const ids = idsBetween(earliest, before);
  if (!page?.after) return { from: earliest, until: before, ids };
  const until = instantOf(page.after);
  return until > before ? null : { from: earliest, until, ids: { ...ids, last: page.after } };
}

function read(store: Store, { user }: ListRequest, { ids }: Bounds, limit: number): Promise<TransactionPage> {
  return store.transactions(user, { from: null, limit, within: ids });
}

async function* documentOf(
  request: ListRequest,
  chunks: AsyncIterable<readonly Transaction[]>,
): AsyncGenerator<string> {
  yield headOf(request);
  let separator = '';
  for await (const transactions of chunks) {
    if (transactions.length === 0) continue;
    yield separator + textOf(transactions);
    separator = ',';
  }
  yield ']}';
}

function headOf({ user }: ListRequest): string {
  return `{"end_user_id":"${user.endUser}","transactions":[`;
}

function textOf(transactions: readonly Transaction[]): string {
  return transactions.map(transactionText).join(',');
}

/** Renewals that are due come first: whatever is stored was stored after all that were due before it. */
async function* transactionsOf(
  store: Store,
  { user }: ListRequest,
  bounds: Bounds,
  first: TransactionPage,
): AsyncGenerator<readonly Transaction[]> {
  yield* chunked(renewalsWithin(bounds, first));
  yield first.transactions;
  for (let from = first.next; from !== null; ) {
    const page = await store.transactions(user, { from, limit: READ_TRANSACTIONS, within: bounds.ids });
    yield page.transactions;
    from = page.next;
  }
}

/** What is due at an instant is what would be due if it were now. */
function* renewalsWithin({ from, until }: Bounds, { cycles, now }: TransactionPage): Generator<Transaction> {
  for (const renewal of renewalsDue(cycles, Math.min(now, until))) {
    if (renewal.createdAt < from) return;
    yield renewal;
  }
}

function* chunked(transactions: Iterable<Transaction>): Generator<Transaction[]> {
  let chunk: Transaction[] = [];
  for (const transaction of transactions) {
    chunk.push(transaction);
    if (chunk.length < READ_TRANSACTIONS) continue;
    yield chunk;
    chunk = [];
  }
  yield chunk;
}
