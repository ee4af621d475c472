// The rows in which a whole ledger is read, sorted by account and end user.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Posting } from '../../ledger/posting.ts';

/** For each end user, all transactions come first, oldest first, and then one `end-user` row. */
export type LedgerRow =
  | { readonly kind: 'transaction'; readonly user: EndUserKey; readonly postings: readonly [Posting, ...Posting[]] }
  | { readonly kind: 'end-user'; readonly user: EndUserKey };

/** The number of postings in a row; an `end-user` row counts as one, because it is stored too. */
export function rowSize(row: LedgerRow): number {
  return row.kind === 'transaction' ? row.postings.length : 1;
}

/** The approximate maximum size of a batch. The rows of one end user can be in several batches. */
export const ROWS_PER_BATCH = 1_000;

export function* inBatches<Row>(
  rows: Iterable<Row>,
  sizeOf: (row: Row) => number = () => 1,
): Generator<readonly Row[]> {
  let batch: Row[] = [];
  let size = 0;
  for (const row of rows) {
    batch.push(row);
    size += sizeOf(row);
    if (size < ROWS_PER_BATCH) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}
