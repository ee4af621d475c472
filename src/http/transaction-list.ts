// The transactions of an end user as a JSON document: all of them, however many there are, written a piece at a time as
// the client reads, so that memory stays flat; or one page. It is read when it is its turn among all lists.

import { Readable } from 'node:stream';
import { INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import type { Transaction } from '../ledger/posting.ts';
import { renewalsDue, renewalsDueCount } from '../ledger/settle.ts';
import { type IdRange, idsBetween, instantOf } from '../ledger/transaction-id.ts';
import type { PageCursor } from '../store/loaded.ts';
import type { Store, TransactionPage } from '../store/store.ts';
import type { ListRequest, PageAsked } from './list-request.ts';
import { transactionText } from './objects.ts';
import { invalidCursor, writeCursor } from './page-cursor.ts';

/** How a list begins: with a page of the usual 100, of which one more is read at either end. Most lists have no more. */
export const FIRST_TRANSACTIONS = 102;

/** Large enough that a read of the store costs more than asking for it, small enough to hold up nothing else. */
export const READ_TRANSACTIONS = 240;

/** By whom the reads of a list are done when it is their turn: how it begins, and what comes behind. */
export interface InTurn {
  begin<Page>(read: () => Promise<Page>): Promise<Page>;
  goOn<Page>(read: () => Promise<Page>): Promise<Page>;
}

const AT_ONCE: InTurn = { begin: (read) => read(), goOn: (read) => read() };

/** Which transactions are wanted: two bounds on their time, and those on their ids that follow from them. */
interface Bounds {
  readonly from: Instant;
  /** The last instant that is wanted. */
  readonly until: Instant;
  readonly ids: IdRange;
}

/** A list that is being made. */
interface Making {
  readonly store: Pick<Store, 'transactions'>;
  readonly request: ListRequest;
  readonly bounds: Bounds;
  readonly inTurn: InTurn;
}

/** @returns the document itself when it is a page or ends with the second read, else a stream of it */
export async function transactionList(
  store: Pick<Store, 'transactions'>,
  request: ListRequest,
  inTurn: InTurn = AT_ONCE,
): Promise<string | Readable> {
  const bounds = boundsOf(request);
  const making = bounds && { store, request, bounds, inTurn };
  if (request.page !== null) return pageOf(making, request, request.page);
  if (making === null) return `${headOf(request)}]}`;
  const first = await begin(making, FIRST_TRANSACTIONS);
  const second = first.next === null ? null : await goOn(making, first.next);
  const read = second === null ? first : { ...second, transactions: first.transactions.concat(second.transactions) };
  const document = documentOf(request, transactionsOf(making, { ...read, cycles: first.cycles, now: first.now }));
  const due = renewalsDueCount(first.cycles, Math.min(first.now, making.bounds.until));
  if (read.next !== null || due > READ_TRANSACTIONS) return Readable.from(document);
  return (await Array.fromAsync(document)).join('');
}

/**
 * A page begins with the transaction that was listed last, which is then left out: a cursor whose transaction is not there
 * comes from elsewhere. One more than the page holds is read to learn whether there are more.
 */
async function pageOf(making: Making | null, request: ListRequest, { limit, after }: PageAsked): Promise<string> {
  const wanted = limit + (after === null ? 1 : 2);
  const found: Transaction[] = [];
  if (making !== null) {
    const first = await begin(making, Math.min(wanted, FIRST_TRANSACTIONS));
    for await (const transactions of transactionsOf(making, first, wanted)) {
      for (const transaction of transactions) found.push(transaction);
      if (found.length >= wanted) break;
    }
  }
  if (after !== null && found.shift()?.id !== after) throw invalidCursor();
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

function begin({ store, request, bounds, inTurn }: Making, limit: number): Promise<TransactionPage> {
  return inTurn.begin(() => store.transactions(request.user, { from: null, limit, within: bounds.ids }));
}

function goOn(
  { store, request, bounds, inTurn }: Making,
  from: PageCursor,
  limit = READ_TRANSACTIONS,
): Promise<TransactionPage> {
  return inTurn.goOn(() => store.transactions(request.user, { from, limit, within: bounds.ids }));
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

/**
 * Renewals that are due come first: whatever is stored was stored after all that were due before it.
 *
 * @param wanted how many are, at the least
 */
async function* transactionsOf(
  making: Making,
  read: TransactionPage,
  wanted = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly Transaction[]> {
  for (const renewals of chunked(renewalsWithin(making.bounds, read))) {
    yield renewals;
    if (renewals.length === READ_TRANSACTIONS) await making.inTurn.goOn(async () => {});
  }
  yield read.transactions;
  let missing = wanted - read.transactions.length;
  for (let from = read.next; from !== null && missing > 0; ) {
    const page = await goOn(making, from, Math.min(missing, READ_TRANSACTIONS));
    yield page.transactions;
    missing -= page.transactions.length;
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
