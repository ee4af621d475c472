// Writes the transactions of an end user as a JSON document: a page or the whole list. A long list is read and written
// no faster than the client receives it, so memory use stays constant.

import { Readable } from 'node:stream';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import type { Transaction } from '../../ledger/posting.ts';
import { dueCount } from '../../ledger/settle.ts';
import { type IdRange, idsBetween, instantOf } from '../../ledger/transaction-id.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { PageCursor } from '../../store/loaded-end-user.ts';
import { invalidCursor, writeCursor } from './cursor.ts';
import { filtersOf, type ListRequest, type PageAsked } from './list-request.ts';
import { type ListSource, plainSource, READ_TRANSACTIONS, type SourcePage } from './list-source.ts';
import { recordedSource } from './recorded-source.ts';

/** Runs a read, either immediately or after the reads that were queued earlier. */
export type InTurn = <Page>(read: () => Promise<Page>) => Promise<Page>;

interface Bounds {
  readonly from: Instant;
  readonly until: Instant;
  readonly ids: IdRange;
}

interface Writing<Entry extends Transaction> extends Bounds {
  readonly source: ListSource<Entry>;
  readonly inTurn: InTurn;
}

/** @returns pieces for a page or a short list, and a stream for a long list */
export function transactionList(
  store: Pick<LedgerStore, 'transactions' | 'history'>,
  request: ListRequest,
  inTurn: InTurn,
): Promise<readonly string[] | Readable> {
  const { user, recorded } = request;
  return recorded === undefined
    ? listOf(plainSource(store, user), request, inTurn)
    : listOf(recordedSource(store, user, recorded), request, inTurn);
}

async function listOf<Entry extends Transaction>(
  source: ListSource<Entry>,
  request: ListRequest,
  inTurn: InTurn,
): Promise<readonly string[] | Readable> {
  const bounds = boundsOf(request);
  const writing = bounds && { ...bounds, source, inTurn };
  if (request.page !== null) return pageOf(source, writing, request, request.page);
  if (writing === null) return Array.fromAsync(documentOf(source, request, []));
  const first = await readPage(writing, null);
  const document = documentOf(source, request, transactionsOf(writing, first));
  const due = dueCount(first.state, Math.min(first.now, writing.until));
  return first.next === null && due <= READ_TRANSACTIONS ? Array.fromAsync(document) : Readable.from(document);
}

/**
 * Reads up to two transactions in addition to those of the page. The last transaction of the previous page shows
 * whether the cursor belongs to this list. The first transaction of the next page shows whether there is a next page.
 */
async function pageOf<Entry extends Transaction>(
  source: ListSource<Entry>,
  writing: Writing<Entry> | null,
  request: ListRequest,
  { limit, after }: PageAsked,
): Promise<readonly string[]> {
  const wanted = limit + (after === null ? 1 : 2);
  const found: Entry[] = [];
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
  const { from, to, user } = request;
  const cursor = last && writeCursor({ last: last.id, from, to }, user, filtersOf(request));
  const tail = `],"next_cursor":${cursor ? `"${cursor}"` : null}}`;
  return Array.fromAsync(documentOf(source, request, chunked(listed), tail));
}

/** @returns null if the range is empty */
function boundsOf({ from, to, page }: ListRequest): Bounds | null {
  const earliest = from ?? 0;
  const before = (to ?? INSTANT_MAX + 1) - 1;
  if (before < earliest) return null;
  const ids = idsBetween(earliest, before);
  if (!page?.after) return { from: earliest, until: before, ids };
  const until = instantOf(page.after);
  return until > before ? null : { from: earliest, until, ids: { ...ids, last: page.after } };
}

function readPage<Entry extends Transaction>(
  { source, ids, inTurn }: Writing<Entry>,
  from: PageCursor | null,
  wanted = source.readMax,
): Promise<SourcePage<Entry>> {
  const limit = Math.min(wanted, source.readMax);
  return inTurn(() => source.read({ from, limit, within: ids }));
}

async function* documentOf<Entry extends Transaction>(
  { text }: ListSource<Entry>,
  { user }: ListRequest,
  chunks: AsyncIterable<readonly Entry[]> | Iterable<readonly Entry[]>,
  tail = ']}',
): AsyncGenerator<string> {
  yield `{"end_user_id":"${user.endUser}","transactions":[`;
  let separator = '';
  for await (const transactions of chunks) {
    if (transactions.length === 0) continue;
    yield separator + transactions.map(text).join(',');
    separator = ',';
  }
  yield tail;
}

/**
 * Transactions that are due but not stored yet come first. They are newer than all stored transactions, because every
 * write first stores all due transactions.
 *
 * @param wanted the minimum number of transactions to yield, if there are that many
 */
async function* transactionsOf<Entry extends Transaction>(
  writing: Writing<Entry>,
  read: SourcePage<Entry>,
  wanted = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Entry[]> {
  for (const due of chunked(dueWithin(writing, read))) {
    yield due;
    if (due.length === READ_TRANSACTIONS) await writing.inTurn(async () => {});
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

function* dueWithin<Entry extends Transaction>(
  { source, from, until, ids }: Writing<Entry>,
  { state, now }: SourcePage<Entry>,
): Generator<Entry> {
  for (const due of source.due(state, Math.min(now, until))) {
    if (due.createdAt < from) return;
    // Several transactions at the instant `until` can be due, and some of them can come before the page.
    if (due.id <= ids.last) yield due;
  }
}

function* chunked<Entry extends Transaction>(transactions: Iterable<Entry>): Generator<Entry[]> {
  let chunk: Entry[] = [];
  for (const transaction of transactions) {
    chunk.push(transaction);
    if (chunk.length < READ_TRANSACTIONS) continue;
    yield chunk;
    chunk = [];
  }
  yield chunk;
}
