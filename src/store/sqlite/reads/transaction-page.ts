// Builds a page of an end user's transactions.

import { isListed, type Posting, type Transaction, transactionOf } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { TransactionPage } from '../../ledger-store.ts';
import type { NumberedPosting } from '../journal/posting-reader.ts';

type Page = Pick<TransactionPage, 'transactions' | 'next'>;

/** One step reads this many postings and takes about 2 ms. Most pages need only one step. */
const STEP_POSTINGS = 1_024;

/**
 * @param postings latest first; read only up to the first posting after the page
 * @param first the lowest transaction ID that the page can contain
 * @yields the cost of each step except the last, relative to the cost of reading one cycle
 * @returns up to `limit` whole transactions, and the cursor for the next page
 */
export function* transactionPage(
  postings: Iterable<NumberedPosting>,
  limit: number,
  first: TransactionId,
): Generator<number, Page> {
  const transactions: Transaction[] = [];
  let current: [Posting, ...Posting[]] | null = null;
  let read = 0;
  for (const { number, posting } of postings) {
    if (posting.transactionId < first) break;
    read += 1;
    if (read % STEP_POSTINGS === 0) yield 2 * STEP_POSTINGS;
    if (!isShown(posting)) continue;
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

/** Returns false if the posting moves no credits, as in a hold, a release, or a refund to an ended cycle. */
function isShown({ kind, createdAt, expiresAt }: Posting): boolean {
  return isListed(kind) && (kind !== 'refund' || expiresAt > createdAt);
}
