// Builds a page of transactions from the postings of an end user.

import { type Posting, type Transaction, transactionOf } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { TransactionPage } from '../../ledger-store.ts';
import type { NumberedPosting } from '../journal/posting-reader.ts';

/**
 * @param postings latest first; read to the end of the page and one posting further
 * @param first transactions with ids before this one are left out
 * @returns up to `limit` whole transactions, and the cursor for the next page
 */
export function transactionPage(
  postings: Iterable<NumberedPosting>,
  limit: number,
  first: TransactionId,
): Pick<TransactionPage, 'transactions' | 'next'> {
  const transactions: Transaction[] = [];
  let current: [Posting, ...Posting[]] | null = null;
  for (const { number, posting } of postings) {
    if (posting.transactionId < first) break;
    // A stop is recorded, but it moves no credits and is not listed as a transaction.
    if (posting.kind === 'stop-cycle') continue;
    if (current !== null && current[0].transactionId === posting.transactionId) {
      current.push(posting);
      continue;
    }
    if (current !== null) transactions.push(transactionOf(current));
    if (transactions.length === limit) return { transactions, next: String(number) };
    current = [posting];
  }
  if (current !== null) transactions.push(transactionOf(current));
  return { transactions, next: null };
}
