// A page of transactions, from a chain of postings.

import { type Posting, type Transaction, transactionOf } from '../../ledger/posting.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import type { TransactionPage } from '../store.ts';

/**
 * @param chain latest first; it is read as far as the page goes, and one posting further
 * @param first transactions with ids before this one are not wanted; all are when absent
 * @returns up to `limit` transactions, whole ones, and where the next page begins
 */
export function transactionPage(
  chain: Iterable<{ number: number; posting: Posting }>,
  limit: number,
  first: TransactionId = '',
): Pick<TransactionPage, 'transactions' | 'next'> {
  const transactions: Transaction[] = [];
  let postings: [Posting, ...Posting[]] | null = null;
  for (const { number, posting } of chain) {
    if (posting.transactionId < first) break;
    // A stop moves no credits: it is kept in the chain, and is no transaction.
    if (posting.kind === 'stop-cycle') continue;
    if (postings !== null && postings[0].transactionId === posting.transactionId) {
      postings.push(posting);
      continue;
    }
    if (postings !== null) transactions.push(transactionOf(postings));
    if (transactions.length === limit) return { transactions, next: String(number) };
    postings = [posting];
  }
  if (postings !== null) transactions.push(transactionOf(postings));
  return { transactions, next: null };
}
