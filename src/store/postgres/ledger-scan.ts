// Reads a whole database in the order of its end users, in one snapshot. The tables are ordered by bucket first, so all
// buckets are read side by side and merged: each by the index of its primary key, with nothing to sort and, on Citus,
// one shard to a statement. Memory holds a few rows of each.

import assert from 'node:assert/strict';
import type { CustomTypesConfig, Pool, PoolClient, QueryResultRow } from 'pg';
import type { EndUserKey } from '../../ledger/command.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { type LedgerRecord, RECORDS_PER_BATCH } from '../ledger-copy.ts';
import { BUCKETS } from './bucket.ts';
import { type CycleRow, cycleOf, type PostingRow, postingOf } from './rows.ts';

/** Rows that are fetched ahead, of each table and bucket. */
const FETCH_ROWS = 200;

interface UserRow extends QueryResultRow {
  account: number;
  end_user: string;
}

/**
 * @param after the end user behind which to begin; null for all
 * @param types how values are read, where it is not as everywhere else
 */
export async function* scanLedger(
  pool: Pool,
  after: EndUserKey | null,
  types?: CustomTypesConfig,
): AsyncGenerator<readonly LedgerRecord[]> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query(
      'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; SET LOCAL idle_in_transaction_session_timeout = 0',
    );
    const buckets = Array.from({ length: BUCKETS }, (_, bucket) => new BucketScan(client, bucket, types));
    await Promise.all(buckets.map((bucket) => bucket.start(after)));
    let batch: LedgerRecord[] = [];
    for (let bucket = lowest(buckets); bucket !== null; bucket = lowest(buckets)) {
      const user = bucket.user as EndUserKey;
      let latest: TransactionId | null = null;
      for (const scan of bucket.scans) {
        while (scan.user !== null && compare(scan.user, user) === 0) {
          const record: LedgerRecord | null = await scan.take(user, latest);
          if (record?.kind === 'posting') latest = record.posting.transactionId;
          if (record !== null) batch.push(record);
          if (batch.length < RECORDS_PER_BATCH) continue;
          yield batch;
          batch = [];
        }
      }
      bucket.move();
    }
    if (batch.length > 0) yield batch;
  } finally {
    client.release(true);
  }
}

class BucketScan {
  readonly scans: readonly TableScan[];
  user: EndUserKey | null = null;

  constructor(client: PoolClient, bucket: number, types: CustomTypesConfig | undefined) {
    const scan = (table: string, order: string, recordOf: RecordOf) =>
      new TableScan(client, { table, bucket, order, recordOf, types });
    this.scans = [
      scan('cycles', ', ends_at, cycle_id', cycleRecord),
      scan('postings', ', transaction_id, cycle_id', postingRecord),
      scan('end_users', '', endUserRecord),
    ];
  }

  async start(after: EndUserKey | null): Promise<void> {
    await Promise.all(this.scans.map((scan) => scan.start(after)));
    this.move();
  }

  /** To the next end user of the bucket. */
  move(): void {
    this.user = lowest(this.scans)?.user ?? null;
  }
}

/** @param latest the posting of this end user that was read last */
type RecordOf = (user: EndUserKey, row: UserRow, latest: TransactionId | null) => LedgerRecord | null;

const cycleRecord: RecordOf = (user, row) => ({ kind: 'cycle', user, cycle: cycleOf(row as UserRow & CycleRow) });

const postingRecord: RecordOf = (user, row) => ({
  kind: 'posting',
  user,
  posting: postingOf(row as UserRow & PostingRow),
});

/** The row of one who was never given anything is a lock and nothing else. */
const endUserRecord: RecordOf = (user, row, latest) =>
  latest === null
    ? null
    : { kind: 'end-user', user, latest, chain: (row as UserRow & { chain: ChainHash | null }).chain };

interface TableOfBucket {
  readonly table: string;
  readonly bucket: number;
  readonly order: string;
  readonly recordOf: RecordOf;
  readonly types: CustomTypesConfig | undefined;
}

/** The rows of a table in a bucket, by end user. */
class TableScan {
  readonly #client: PoolClient;
  readonly #cursor: string;
  readonly #select: string;
  readonly #order: string;
  readonly #recordOf: RecordOf;
  readonly #types: CustomTypesConfig | undefined;
  #rows: UserRow[] = [];
  #at = 0;
  /** Whose row comes next. */
  user: EndUserKey | null = null;

  constructor(client: PoolClient, { table, bucket, order, recordOf, types }: TableOfBucket) {
    this.#client = client;
    this.#cursor = `${table}_${bucket}`;
    this.#select = `SELECT * FROM scrip.${table} WHERE bucket = ${bucket}`;
    this.#order = `ORDER BY bucket, account, end_user${order}`;
    this.#recordOf = recordOf;
    this.#types = types;
  }

  async start(after: EndUserKey | null): Promise<void> {
    // A cursor takes no parameters.
    assert(after === null || (Number.isSafeInteger(after.account) && /^[0-9a-f-]{36}$/.test(after.endUser)));
    const behind = after === null ? '' : `AND (account, end_user) > (${after.account}, '${after.endUser}'::uuid)`;
    await this.#client.query(`DECLARE ${this.#cursor} CURSOR FOR ${this.#select} ${behind} ${this.#order}`);
    await this.#fetch();
  }

  /** Waits only where further rows have to be fetched. */
  take(user: EndUserKey, latest: TransactionId | null): LedgerRecord | null | Promise<LedgerRecord | null> {
    const record = this.#recordOf(user, this.#rows[this.#at] as UserRow, latest);
    this.#at += 1;
    if (this.#at === this.#rows.length) return this.#fetch().then(() => record);
    this.#look();
    return record;
  }

  async #fetch(): Promise<void> {
    const fetch = { text: `FETCH ${FETCH_ROWS} FROM ${this.#cursor}`, ...(this.#types && { types: this.#types }) };
    this.#rows = (await this.#client.query<UserRow>(fetch)).rows;
    this.#at = 0;
    this.#look();
  }

  #look(): void {
    const row = this.#rows[this.#at];
    this.user = row ? { account: row.account, endUser: row.end_user } : null;
  }
}

function lowest<Scan extends { readonly user: EndUserKey | null }>(scans: readonly Scan[]): Scan | null {
  let first: Scan | null = null;
  for (const scan of scans)
    if (scan.user !== null && (first === null || compare(scan.user, first.user as EndUserKey) < 0)) first = scan;
  return first;
}

function compare(a: EndUserKey, b: EndUserKey): number {
  return a.account - b.account || (a.endUser < b.endUser ? -1 : a.endUser > b.endUser ? 1 : 0);
}
