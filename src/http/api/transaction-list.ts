// Writes the transactions of an end user as a JSON document: a page or the whole list. A long list is read and written
// in bounded pieces as the client reads, so memory use stays constant. The caller schedules the read of each piece.

import { Readable } from 'node:stream';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import type { Transaction } from '../../ledger/posting.ts';
import { dueCount, dueTransactions } from '../../ledger/settle.ts';
import { type IdRange, idsBetween, instantOf } from '../../ledger/transaction-id.ts';
import type { LedgerStore, PageCursor, TransactionPage } from '../../store/ledger-store.ts';
import { invalidCursor, writeCursor } from './cursor.ts';
import type { ListRequest, PageAsked } from './list-request.ts';
import { transactionText } from './replies.ts';

/**
 * Transactions per read. It takes 0.7 ms on SQLite: short enough not to delay other requests, and long enough that the
 * overhead is small.
 */
export const READ_TRANSACTIONS = 240;

/** Runs a read, immediately or once the reads queued before it are done. */
export type InTurn = <Page>(read: () => Promise<Page>) => Promise<Page>;

/** Which transactions to list: a time range, and the range of ids that it implies. */
interface Bounds {
  readonly from: Instant;
  /** Inclusive upper bound. */
  readonly until: Instant;
  readonly ids: IdRange;
}

/** A list that is being written. */
interface Writing extends Bounds {
  readonly store: Pick<LedgerStore, 'transactions'>;
  readonly request: ListRequest;
  readonly inTurn: InTurn;
}

/** @returns the pieces of the document for a page or a short list, else a stream */
export async function transactionList(
  store: Pick<LedgerStore, 'transactions'>,
  request: ListRequest,
  inTurn: InTurn,
): Promise<readonly string[] | Readable> {
  const bounds = boundsOf(request);
  const writing = bounds && { ...bounds, store, request, inTurn };
  if (request.page !== null) return pageOf(writing, request, request.page);
  if (writing === null) return Array.fromAsync(documentOf(request, []));
  const first = await readPage(writing, null);
  const document = documentOf(request, transactionsOf(writing, first));
  const due = dueCount(first.state, Math.min(first.now, writing.until));
  return first.next === null && due <= READ_TRANSACTIONS ? Array.fromAsync(document) : Readable.from(document);
}

/**
 * Reads one more transaction at each end of the page. The one before the page is the last of the previous page; if it
 * is missing, the cursor belongs to another list. The one after the page shows whether there are more.
 */
async function pageOf(
  writing: Writing | null,
  request: ListRequest,
  { limit, after }: PageAsked,
): Promise<readonly string[]> {
  const wanted = limit + (after === null ? 1 : 2);
  const found: Transaction[] = [];
  if (writing !== null) {
    const first = await readPage(writing, null, wanted);
    for await (const transactions of transactionsOf(writing, first, wanted)) {
      for (const transaction of transactions) found.push(transaction);
      if (found.length >= wanted) break;
    }
  }
  if (after !== null && found.shift()?.id !== after) throw invalidCursor();
  const listed = found.slice(0, limit);
  const last = found.length > limit ? listed.at(-1) : undefined;
  const cursor = last && writeCursor({ last: last.id, from: request.from, to: request.to }, request.user);
  return Array.fromAsync(documentOf(request, chunked(listed), `],"next_cursor":${cursor ? `"${cursor}"` : null}}`));
}

/** @returns null if no transaction can be in the range */
function boundsOf({ from, to, page }: ListRequest): Bounds | null {
  const earliest = from ?? 0;
  const before = (to ?? INSTANT_MAX + 1) - 1;
  if (before < earliest) return null;
  const ids = idsBetween(earliest, before);
  if (!page?.after) return { from: earliest, until: before, ids };
  const until = instantOf(page.after);
  return until > before ? null : { from: earliest, until, ids: { ...ids, last: page.after } };
}

function readPage(
  { store, request, ids, inTurn }: Writing,
  from: PageCursor | null,
  wanted = READ_TRANSACTIONS,
): Promise<TransactionPage> {
  const limit = Math.min(wanted, READ_TRANSACTIONS);
  return inTurn(() => store.transactions(request.user, { from, limit, within: ids }));
}

async function* documentOf(
  { user }: ListRequest,
  chunks: AsyncIterable<readonly Transaction[]> | Iterable<readonly Transaction[]>,
  tail = ']}',
): AsyncGenerator<string> {
  yield `{"end_user_id":"${user.endUser}","transactions":[`;
  let separator = '';
  for await (const transactions of chunks) {
    if (transactions.length === 0) continue;
    yield separator + transactions.map(transactionText).join(',');
    separator = ',';
  }
  yield tail;
}

/**
 * Yields the transactions, newest first. Due renewals that are not stored yet come first, since a transaction is stored
 * only after the renewals that were due before it.
 *
 * @param wanted the minimum number of transactions to yield, if there are as many
 */
async function* transactionsOf(
  writing: Writing,
  read: TransactionPage,
  wanted = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Transaction[]> {
  for (const renewals of chunked(renewalsWithin(writing, read))) {
    yield renewals;
    if (renewals.length === READ_TRANSACTIONS) await writing.inTurn(async () => {});
  }
  yield read.transactions;
  let missing = wanted - read.transactions.length;
  for (let from = read.next; from !== null && missing > 0; ) {
    const page = await readPage(writing, from, missing);
    yield page.transactions;
    missing -= page.transactions.length;
    from = page.next;
  }
}

/** Due renewals that are not stored yet, newest first. */
function* renewalsWithin({ from, until }: Bounds, { state, now }: TransactionPage): Generator<Transaction> {
  for (const renewal of dueTransactions(state, Math.min(now, until))) {
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
