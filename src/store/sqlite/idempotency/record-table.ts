// Stores, finds and deletes the idempotency records of a ledger file.

import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Batch } from '../../../ledger/batch.ts';
import { type IdempotencyRecord, type IdempotencyRecords, nameOf } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { isGrant, outcomeOf, storedOutcome } from '../../stored-record.ts';
import { ManyRows } from '../file/many-rows.ts';
import { numberOf, prepare, type Row, type Statement } from '../file/statements.ts';
import { uuidOf } from '../file/uuid.ts';
import { RecordIndex } from './record-index.ts';

export const RECORD_COLUMNS = 'account, end_user, key, request, request_id, transaction_id, outcome, recorded_at';

/** The maximum number of records that one step of a sweep reads. */
const SWEPT_MAX = 2_000;

export class RecordTable {
  readonly #insert: ManyRows;
  readonly #get: Statement;
  readonly #oldest: Statement;
  readonly #delete: Statement;
  readonly #index: RecordIndex;
  readonly #seed: string;
  readonly #hashes = new Map<string, number>();
  /** The number of the next record is twice this value, plus one for a grant. */
  #sequence: number;
  /** The last record that the sweep has processed, for each of the two retention times. */
  readonly #swept = { grants: 0, others: 0 };

  constructor(db: DatabaseSync, runMax?: number) {
    this.#insert = new ManyRows(
      db,
      10,
      (rows) => `INSERT OR FAIL INTO idempotency_records (record, hash, ${RECORD_COLUMNS}) VALUES ${rows}`,
    );
    this.#get = prepare(db, `SELECT ${RECORD_COLUMNS} FROM idempotency_records WHERE record = ?`);
    this.#oldest = prepare(
      db,
      'SELECT record, recorded_at FROM idempotency_records WHERE record > ? ORDER BY record LIMIT ?',
    );
    this.#delete = prepare(db, 'DELETE FROM idempotency_records WHERE record > ? AND record <= ? AND record % 2 = ?');
    this.#index = new RecordIndex(db, runMax);
    this.#seed = Buffer.from(db.prepare('SELECT seed FROM idempotency_indexed').get()?.seed as Uint8Array).toString(
      'hex',
    );
    const last = numberOf(db, 'SELECT coalesce(max(record), 0) FROM idempotency_records');
    this.#sequence = Math.ceil(Math.max(last, this.#index.indexed) / 2) + 1;
  }

  /** See `RecordIndex.catchUp`. */
  catchUp(): void {
    this.#index.catchUp();
  }

  load({ recordNames }: Batch): IdempotencyRecords {
    this.#hashes.clear();
    for (const name of recordNames) if (name !== null) this.#hashes.set(name, hashOf(this.#seed, name));
    const found = new Map<string, IdempotencyRecord>();
    for (const number of this.#index.find([...this.#hashes.values()])) {
      const row = this.#get.get(number);
      if (row === undefined) continue;
      const record = recordOf(row);
      found.set(nameOf(record), record);
    }
    return found;
  }

  insert(records: readonly IdempotencyRecord[]): void {
    for (const record of records) {
      const { account, endUser, key, request, requestId, recordedAt } = record;
      const { transactionId, outcome } = storedOutcome(record.outcome);
      const number = 2 * this.#sequence++ + (isGrant(record) ? 1 : 0);
      const name = nameOf(record);
      const hash = this.#hashes.get(name) ?? hashOf(this.#seed, name);
      const user = this.#insert.uuid(endUser);
      const transaction = transactionId === null ? null : this.#insert.uuid(transactionId);
      this.#insert.add(number, hash, account, user, key, request, requestId, transaction, outcome, recordedAt);
      this.#index.add(hash, number);
    }
    this.#insert.flush();
    this.#index.keepUp();
  }

  /** Deletes records that were stored before `before`: those of grants, or those of all other writes. */
  sweep(retention: 'grants' | 'others', before: Instant): { readonly deleted: number; readonly isMore: boolean } {
    const after = this.#swept[retention];
    const rows = this.#oldest.all(after, SWEPT_MAX) as readonly (readonly [record: number, at: Instant])[];
    // Record numbers and `recorded_at` ascend together.
    const expired = rows.findLast(([, at]) => at < before)?.[0];
    if (expired === undefined) return { deleted: 0, isMore: false };
    const deleted = Number(this.#delete.run(after, expired, retention === 'grants' ? 1 : 0).changes);
    this.#swept[retention] = expired;
    this.#index.expire(retention, expired, deleted);
    return { deleted, isMore: rows.length === SWEPT_MAX };
  }
}

/** The hash has only 31 bits, so that V8 stores it as a small integer. */
export function hashOf(seed: string, name: string): number {
  return hash('sha256', seed + name, 'buffer').readUInt32BE(0) >>> 1;
}

export function recordOf(row: Row): IdempotencyRecord {
  const [account, endUser, key, request, requestId, transaction, outcome, recordedAt] = row;
  const transactionId = transaction === null ? null : uuidOf(transaction as Uint8Array);
  return {
    account: account as number,
    endUser: uuidOf(endUser as Uint8Array),
    key: key as string,
    request: request as string,
    requestId: requestId as string,
    outcome: outcomeOf({ transactionId, outcome: outcome as string | null }),
    recordedAt: recordedAt as number,
  };
}
