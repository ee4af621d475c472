// All transactions of an end user as one JSON document, however many there are: written a page at a time as the client
// reads, so that memory stays flat.

import { Readable } from 'node:stream';
import type { EndUserKey } from '../ledger/command.ts';
import type { Transaction } from '../ledger/posting.ts';
import { renewalsDue, renewalsDueCount } from '../ledger/settle.ts';
import type { Store, TransactionPage } from '../store/store.ts';
import { transactionObject } from './objects.ts';

/** Large enough that a page costs more than asking for it, small enough to hold up nothing else. */
const PAGE_TRANSACTIONS = 500;

/** @returns the document itself when it fits a page, else a stream of it */
export async function transactionList(store: Store, user: EndUserKey): Promise<string | Readable> {
  const first = await store.transactions(user, { from: null, limit: PAGE_TRANSACTIONS });
  const chunks = documentOf(store, user, first);
  if (first.next !== null || renewalsDueCount(first.cycles, first.now) > PAGE_TRANSACTIONS)
    return Readable.from(chunks);
  return (await Array.fromAsync(chunks)).join('');
}

async function* documentOf(store: Store, user: EndUserKey, first: TransactionPage): AsyncGenerator<string> {
  yield `{"end_user_id":"${user.endUser}","transactions":[`;
  let separator = '';
  for await (const transactions of pagesOf(store, user, first)) {
    if (transactions.length === 0) continue;
    yield separator + transactions.map((transaction) => JSON.stringify(transactionObject(transaction))).join(',');
    separator = ',';
  }
  yield ']}';
}

/** Renewals that are due come first: whatever is stored was stored after all that were due before it. */
async function* pagesOf(
  store: Store,
  user: EndUserKey,
  first: TransactionPage,
): AsyncGenerator<readonly Transaction[]> {
  yield* chunked(renewalsDue(first.cycles, first.now));
  yield first.transactions;
  for (let from = first.next; from !== null; ) {
    const page = await store.transactions(user, { from, limit: PAGE_TRANSACTIONS });
    yield page.transactions;
    from = page.next;
  }
}

function* chunked(transactions: Iterable<Transaction>): Generator<Transaction[]> {
  let chunk: Transaction[] = [];
  for (const transaction of transactions) {
    chunk.push(transaction);
    if (chunk.length < PAGE_TRANSACTIONS) continue;
    yield chunk;
    chunk = [];
  }
  yield chunk;
}
