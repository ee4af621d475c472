// Collects the rows that a batch writes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { UserChange } from '../../../ledger/batch.ts';
import type { Cycle } from '../../../ledger/cycle.ts';
import type { Hold } from '../../../ledger/hold.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { cycleChanges } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { cycleValues, isSnapshotDue, stateText } from '../../state-text.ts';
import { recordValues } from '../idempotency/record-table.ts';
import type { Query, Value } from '../pool/connection.ts';
import { type Key, keyOf } from '../rows/key.ts';
import { holdValues, postingValues } from '../rows/ledger-rows.ts';
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
  readonly #openedHolds: RowArrays;
  readonly #closedHolds: RowArrays;
  /** End users without a changed cycle. */
  readonly #moved: RowArrays;
  /** States without holds. */
  readonly #snapshots: RowArrays;
  readonly #records: RowArrays;

  constructor(statements: BatchStatements, idsThrough: TransactionId) {
    this.#statements = statements;
    this.#idsThrough = idsThrough;
    this.#changed = statements.changeCycles.rows();
    this.#opened = statements.insertCycles.rows();
    this.#posted = (statements.post ?? statements.insertPostings).rows();
    this.#openedHolds = statements.openHolds.rows();
    this.#closedHolds = statements.closeHolds.rows();
    this.#moved = statements.moveIds.rows();
    this.#snapshots = statements.addSnapshots.rows();
    this.#records = statements.insertRecords.rows();
  }

  addChange(key: Key, { before, after, postings }: UserChange): void {
    const { opened, changed } = cycleChanges(before, after);
    const byPosting = new Map<TransactionId, Change>();
    for (const change of changed) {
      const { before: stored, after: cycle } = change;
      const { id, remaining, held, status, period, amount, start, end } = cycle;
      // Starting a cycle supersedes a canceled cycle without a posting to the canceled cycle.
      const isPosted = period === stored.period && status !== 'superseded';
      if (isPosted && this.#statements.post !== null) byPosting.set(id, change);
      else this.#changed.add(...key, stored.end, id, remaining, held, status, period, amount, start, end);
    }
    for (const cycle of opened) this.#opened.add(...key, ...cycleValues(cycle), this.#idsThrough);
    if (opened.length === 0 && changed.length === 0) this.#moved.add(...key);
    this.#addPostings(key, postings, byPosting);
    if (before.holds !== after.holds) this.#addHolds(key, before.holds, after.holds);
    const { transactionId, createdAt } = postings.at(-1) as Posting;
    if (!isSnapshotDue(postings, after)) return;
    this.#snapshots.add(...key, transactionId, stateText({ ...after, holds: [] }, createdAt));
  }

  /** @param byPosting the changes of cycles that are written with postings to them */
  #addPostings(key: Key, postings: readonly Posting[], byPosting: Map<TransactionId, Change>): void {
    let line = 0;
    for (const [index, posting] of postings.entries()) {
      line = posting.transactionId === postings[index - 1]?.transactionId ? line + 1 : 0;
      const change = byPosting.get(posting.cycleId);
      // A posting may belong to an earlier period of the cycle.
      const carried = change?.after.period === posting.period ? change : null;
      if (carried !== null) {
        byPosting.delete(posting.cycleId);
        this.#changedByPosting += 1;
      }
      const values = postingValues(posting, line);
      if (this.#statements.post === null) this.#posted.add(...key, ...values);
      else {
        const [remaining, ...others] = newValuesOf(carried);
        this.#posted.add(...key, remaining, ...values, ...others);
      }
    }
    assert(byPosting.size === 0, 'a cycle changes by a posting to it');
  }

  /** A hold is never changed: it is closed as a whole. */
  #addHolds(key: Key, before: readonly Hold[], after: readonly Hold[]): void {
    const [stored, open] = [before, after].map((holds) => new Set(holds.map(({ id }) => id)));
    for (const hold of before) if (!open?.has(hold.id)) this.#closedHolds.add(...key, hold.expiresAt, hold.id);
    for (const hold of after) if (!stored?.has(hold.id)) this.#openedHolds.add(...key, ...holdValues(hold));
  }

  addRecord(record: IdempotencyRecord): void {
    this.#records.add(...keyOf(record), ...recordValues(record));
  }

  /**
   * The statements in the order in which they must run: a cycle must be stopped before another is opened, since the
   * unique index allows only one active cycle, and holds must be stored before snapshots, which read them.
   */
  writes(at: Instant): Write[] {
    const { changeCycles, insertCycles, closeHolds, openHolds, moveIds, addSnapshots, insertRecords } =
      this.#statements;
    return [
      ...write(changeCycles, this.#changed, this.#idsThrough),
      ...(this.#posted.count === 0 ? [] : this.#postingWrites(at)),
      ...write(insertCycles, this.#opened),
      ...write(closeHolds, this.#closedHolds),
      ...write(openHolds, this.#openedHolds),
      ...write(moveIds, this.#moved, this.#idsThrough),
      ...write(addSnapshots, this.#snapshots),
      ...write(insertRecords, this.#records),
    ];
  }

  #postingWrites(at: Instant): Write[] {
    const { post, postPlain, insertPostings, insertFeed } = this.#statements;
    const [rows, batch] = [this.#posted, randomUUID()];
    const statement = postPlain?.takes(rows) ? postPlain : post;
    if (statement !== null)
      return [{ query: statement.query(rows, this.#idsThrough, at, batch, this.#changedByPosting), rows: 1 }];
    const [, accounts = '', , ids = ''] = rows.literals();
    return [...write(insertPostings, rows), { query: insertFeed([at, batch, accounts, ids]), rows: 1 }];
  }
}

/** A cycle that changes. */
interface Change {
  readonly before: Cycle;
  readonly after: Cycle;
}

/**
 * The new values of a cycle; nulls if it does not change. An unchanged `held` and the status `active` are sent as null.
 */
function newValuesOf(change: Change | null): [remaining: Value, held: Value, status: Value] {
  if (change === null) return [null, null, null];
  const { before, after } = change;
  const held = after.held === before.held ? null : after.held;
  return [after.remaining, held, after.status === 'active' ? null : after.status];
}

function write(statement: RowsStatement, rows: RowArrays, ...others: readonly string[]): Write[] {
  return rows.count === 0 ? [] : [{ query: statement.query(rows, ...others), rows: rows.count }];
}
