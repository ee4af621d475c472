// Collects the rows that a batch writes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { UserChange } from '../../../ledger/batch.ts';
import type { Cycle } from '../../../ledger/cycle.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { cycleChanges } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { cycleValues, isSnapshotDue, stateText } from '../../state-text.ts';
import { recordValues } from '../idempotency/record-table.ts';
import type { Query, Value } from '../pool/connection.ts';
import { type Key, keyOf } from '../rows/key.ts';
import { postingValues } from '../rows/ledger-rows.ts';
import type { RowArrays, RowsStatement } from '../rows/row-arrays.ts';
import type { BatchStatements } from './batch-statements.ts';

export interface Write {
  readonly query: Query;
  /** The row count that the statement must report. */
  readonly rows: number;
}

export class BatchRows {
  readonly #statements: BatchStatements;
  /** The new `ids_through` of all changed cycles; see the schema. */
  readonly #idsThrough: TransactionId;
  readonly #changed: RowArrays;
  readonly #opened: RowArrays;
  /** Postings, with the new values of their cycles if one statement writes both. */
  readonly #posted: RowArrays;
  /** Number of cycles that are changed by the statement with the postings. */
  #changedByPosting = 0;
  readonly #snapshots: RowArrays;
  readonly #records: RowArrays;

  constructor(statements: BatchStatements, idsThrough: TransactionId) {
    this.#statements = statements;
    this.#idsThrough = idsThrough;
    this.#changed = statements.changeCycles.rows();
    this.#opened = statements.insertCycles.rows();
    this.#posted = (statements.post ?? statements.insertPostings).rows();
    this.#snapshots = statements.insertSnapshots.rows();
    this.#records = statements.insertRecords.rows();
  }

  addChange(key: Key, { before, after, postings }: UserChange): void {
    const { opened, changed } = cycleChanges(before, after);
    const byPosting = new Map<TransactionId, Cycle>();
    for (const { before: stored, after: cycle } of changed) {
      const { id, remaining, status, period, amount, start, end } = cycle;
      // Starting a cycle supersedes a canceled one without a posting to it.
      const isPosted = period === stored.period && status !== 'superseded';
      if (isPosted && this.#statements.post !== null) byPosting.set(id, cycle);
      else this.#changed.add(...key, stored.end, id, remaining, status, period, amount, start, end);
    }
    for (const cycle of opened) this.#opened.add(...key, ...cycleValues(cycle), this.#idsThrough);
    for (const posting of postings.toReversed()) {
      const cycle = byPosting.get(posting.cycleId);
      byPosting.delete(posting.cycleId);
      if (cycle !== undefined) this.#changedByPosting += 1;
      const left = this.#statements.post === null ? [] : leftIn(cycle);
      this.#posted.add(...key, ...postingValues(posting), ...left);
    }
    assert(byPosting.size === 0, 'a cycle changes by a posting to it');
    const { transactionId, createdAt } = postings.at(-1) as Posting;
    if (isSnapshotDue(postings, after)) this.#snapshots.add(...key, transactionId, stateText(after, createdAt));
  }

  addRecord(record: IdempotencyRecord): void {
    this.#records.add(...keyOf(record), ...recordValues(record));
  }

  /**
   * The statements in the order in which they must run: a cycle must be stopped before another is opened, since the
   * unique index allows only one active cycle.
   */
  writes(at: Instant): Write[] {
    const { changeCycles, insertCycles, insertSnapshots, insertRecords } = this.#statements;
    return [
      ...write(changeCycles, this.#changed, this.#idsThrough),
      ...(this.#posted.count === 0 ? [] : this.#postingWrites(at)),
      ...write(insertCycles, this.#opened),
      ...write(insertSnapshots, this.#snapshots),
      ...write(insertRecords, this.#records),
    ];
  }

  #postingWrites(at: Instant): Write[] {
    const { post, insertPostings, insertFeed } = this.#statements;
    const [rows, batch] = [this.#posted, randomUUID()];
    if (post !== null)
      return [{ query: post.query(rows, this.#idsThrough, at, batch, this.#changedByPosting), rows: 1 }];
    const [, accounts = '', , ids = ''] = rows.literals();
    return [...write(insertPostings, rows), { query: insertFeed([at, batch, accounts, ids]), rows: 1 }];
  }
}

/**
 * The new values of a posting's cycle, or nulls if a later posting changes the cycle. The status is sent only if the
 * cycle is no longer active.
 */
function leftIn(cycle: Cycle | undefined): Value[] {
  if (cycle === undefined) return [null, null];
  return [cycle.remaining, cycle.status === 'active' ? null : cycle.status];
}

function write(statement: RowsStatement, rows: RowArrays, ...others: readonly string[]): Write[] {
  return rows.count === 0 ? [] : [{ query: statement.query(rows, ...others), rows: rows.count }];
}
