// Reads all postings of a database, sorted by account and end user. The primary key sorts by bucket first (see
// `rows/key.ts`), so the scan reads all buckets at the same time, and merges them without a sort. On Citus, each
// statement reads one shard.

import assert from 'node:assert/strict';
import { type EndUserKey, isSameEndUser } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { type LedgerRow, ROWS_PER_BATCH, rowSize } from '../../tools/ledger-row.ts';
import type { Placement } from '../citus/placement.ts';
import type { Connection, Query } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { setLocal, UNLIMITED } from '../pool/transactions.ts';
import { BUCKETS, compareEndUsers } from '../rows/key.ts';
import { type ReadInteger, USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';

const FETCHED_ROWS = 200;

/** Settings for a transaction that reads whole tables in key order. */
export const SCANNING = [
  ...UNLIMITED,
  ...setLocal({ enable_seqscan: 'off', enable_bitmapscan: 'off', enable_sort: 'off' }),
];

/** Statements that begin a transaction that reads whole tables, in one snapshot. */
export function beginScan({ beginSnapshot, stayAll }: Placement): readonly Query[] {
  // PostgreSQL takes the snapshot at the first query, not at BEGIN, so `stayAll` must come first.
  return [...beginSnapshot, ...stayAll, ...SCANNING];
}

interface ScanOptions {
  /** The scan reads only end users that sort after this end user; null to read all. */
  readonly after: EndUserKey | null;
  readonly integer?: ReadInteger;
}

/** Reads the postings in a new transaction. @param begin the statements that begin the transaction; see `beginScan` */
export async function* ledgerRowsOf(
  pool: ConnectionPool,
  begin: readonly Query[],
  options: ScanOptions,
): AsyncGenerator<readonly LedgerRow[]> {
  const connection = await pool.connect();
  try {
    await connection.send(begin);
    yield* ledgerRowsIn(connection, options);
  } finally {
    connection.release(false);
  }
}

/** Reads the postings in the connection's current snapshot. */
export async function* ledgerRowsIn(
  connection: Connection,
  options: ScanOptions,
): AsyncGenerator<readonly LedgerRow[]> {
  const buckets: Bucket[] = [];
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const transactions = transactionsOf(connection, bucket, options);
    buckets.push({ transactions, next: await nextOf(transactions) });
  }
  let batch: LedgerRow[] = [];
  let size = 0;
  for (let bucket = lowest(buckets); bucket?.next; bucket = lowest(buckets)) {
    const { user } = bucket.next;
    while (bucket.next && isSameEndUser(bucket.next.user, user)) {
      batch.push(bucket.next);
      size += rowSize(bucket.next);
      bucket.next = await nextOf(bucket.transactions);
      if (size < ROWS_PER_BATCH) continue;
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push({ kind: 'end-user', user });
  }
  if (batch.length > 0) yield batch;
}

type TransactionRow = Extract<LedgerRow, { kind: 'transaction' }>;

interface Bucket {
  readonly transactions: AsyncGenerator<TransactionRow>;
  /** Undefined if all transactions have been read. */
  next: TransactionRow | undefined;
}

async function nextOf(transactions: AsyncGenerator<TransactionRow>): Promise<TransactionRow | undefined> {
  return (await transactions.next()).value;
}

async function* transactionsOf(
  connection: Connection,
  bucket: number,
  { after, integer }: ScanOptions,
): AsyncGenerator<TransactionRow> {
  // `cursor` takes no query parameters, so `after` becomes part of the SQL text.
  assert(after === null || (Number.isSafeInteger(after.account) && /^[0-9a-f-]{36}$/.test(after.endUser)));
  const behind = after === null ? '' : `AND (account, end_user) > (${after.account}, '${after.endUser}'::uuid)`;
  const text = `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings WHERE bucket = ${bucket} ${behind}
    ORDER BY bucket, account, end_user, transaction_id, line`;
  let current: { user: EndUserKey; postings: [Posting, ...Posting[]] } | null = null;
  for await (const rows of connection.cursor(`postings_${bucket}`, text, FETCHED_ROWS))
    for (const row of rows) {
      const { user, posting } = userPostingOf(row, integer);
      const isSame = posting.transactionId === current?.postings[0].transactionId && isSameEndUser(user, current.user);
      if (isSame) current?.postings.push(posting);
      else {
        if (current !== null) yield { kind: 'transaction', ...current };
        current = { user, postings: [posting] };
      }
    }
  if (current !== null) yield { kind: 'transaction', ...current };
}

/** The bucket whose next end user sorts first; null if all buckets have been read. */
function lowest(buckets: readonly Bucket[]): Bucket | null {
  let first: Bucket | null = null;
  for (const bucket of buckets)
    if (bucket.next && (!first?.next || compareEndUsers(bucket.next.user, first.next.user) < 0)) first = bucket;
  return first;
}
