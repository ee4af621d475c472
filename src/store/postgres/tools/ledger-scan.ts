// Reads all postings of a database, sorted by account and end user. The primary key sorts by bucket first (see
// `rows/key.ts`), so the scan reads all buckets at the same time, and merges them without a sort. On Citus, each
// statement reads one shard.

import assert from 'node:assert/strict';
import { type EndUserKey, isSameEndUser } from '../../../ledger/command.ts';
import type { FeedPosting } from '../../feed.ts';
import { type LedgerRow, ROWS_PER_BATCH } from '../../tools/ledger-copy.ts';
import type { Connection, TextRow } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { BEGIN_SNAPSHOT, setLocal, UNLIMITED } from '../pool/transactions.ts';
import { BUCKETS, compareEndUsers } from '../rows/key.ts';
import { type ReadInteger, USER_POSTING_COLUMNS, userPostingOf } from '../rows/ledger-rows.ts';

const FETCHED_ROWS = 200;

/** Settings for a transaction that reads whole tables in key order. */
export const SCANNING = [
  ...UNLIMITED,
  ...setLocal({ enable_seqscan: 'off', enable_bitmapscan: 'off', enable_sort: 'off' }),
];

export interface ScanOptions {
  /** The scan reads only end users that sort after this end user; null to read all. */
  readonly after: EndUserKey | null;
  readonly integer?: ReadInteger;
}

/** Reads the postings in a new snapshot. */
export async function* ledgerRowsOf(pool: ConnectionPool, options: ScanOptions): AsyncGenerator<readonly LedgerRow[]> {
  const connection = await pool.connect();
  try {
    await connection.send([BEGIN_SNAPSHOT, ...SCANNING]);
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
  const buckets = Array.from({ length: BUCKETS }, (_, bucket) => new BucketPostings(connection, bucket, options));
  for (const bucket of buckets) await bucket.fetch();
  let batch: LedgerRow[] = [];
  for (let bucket = lowest(buckets); bucket?.next; bucket = lowest(buckets)) {
    const { user } = bucket.next;
    while (bucket.next && isSameEndUser(bucket.next.user, user)) {
      batch.push({ kind: 'posting', ...bucket.next });
      bucket.advance();
      if (bucket.next === undefined) await bucket.fetch();
      if (batch.length < ROWS_PER_BATCH) continue;
      yield batch;
      batch = [];
    }
    batch.push({ kind: 'end-user', user });
  }
  if (batch.length > 0) yield batch;
}

class BucketPostings {
  /** The next posting; undefined if more rows must be fetched, or if all postings have been read. */
  next: FeedPosting | undefined;
  readonly #batches: AsyncGenerator<readonly TextRow[]>;
  readonly #integer: ReadInteger | undefined;
  #rows: Iterator<TextRow> = [].values();

  constructor(connection: Connection, bucket: number, { after, integer }: ScanOptions) {
    // `cursor` takes no query parameters, so `after` becomes part of the SQL text.
    assert(after === null || (Number.isSafeInteger(after.account) && /^[0-9a-f-]{36}$/.test(after.endUser)));
    const behind = after === null ? '' : `AND (account, end_user) > (${after.account}, '${after.endUser}'::uuid)`;
    const text = `SELECT ${USER_POSTING_COLUMNS} FROM scrip.postings WHERE bucket = ${bucket} ${behind}
      ORDER BY bucket, account, end_user, transaction_id, line`;
    this.#batches = connection.cursor(`postings_${bucket}`, text, FETCHED_ROWS);
    this.#integer = integer;
  }

  async fetch(): Promise<void> {
    const { value, done } = await this.#batches.next();
    this.#rows = (done ? [] : value).values();
    this.advance();
  }

  advance(): void {
    const { value, done } = this.#rows.next();
    this.next = done ? undefined : userPostingOf(value, this.#integer);
  }
}

/** The bucket whose next end user sorts first; null if all buckets have been read. */
function lowest(buckets: readonly BucketPostings[]): BucketPostings | null {
  let first: BucketPostings | null = null;
  for (const bucket of buckets)
    if (bucket.next && (!first?.next || compareEndUsers(bucket.next.user, first.next.user) < 0)) first = bucket;
  return first;
}
