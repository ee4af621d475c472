// Collects the rows that a batch writes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { UserChange } from '../../../ledger/batch.ts';
import { type Cycle, isLive } from '../../../ledger/cycle.ts';
import type { Hold } from '../../../ledger/hold.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { scheduledText } from '../../../ledger/plan.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { cycleChanges } from '../../../ledger/state.ts';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
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
  /** Whether the statement fails by itself if it does not change all rows, even on a shard. */
  readonly isChecked: boolean;
}

export class BatchRows {
  readonly #statements: BatchStatements;
  /** The new `ids_through` of all changed cycles; see the schema. */
  readonly #idsThrough: TransactionId;
  /** The rows for postings. They also contain new values of the cycles. */
  readonly #posted: RowArrays;
  /** The rows of all other statements. A batch of subtractions often has no such rows. */
  readonly #others = new Map<RowsStatement, RowArrays>();
  #changedByPosting = 0;

  constructor(statements: BatchStatements, idsThrough: TransactionId) {
    this.#statements = statements;
    this.#idsThrough = idsThrough;
    this.#posted = statements.post.rows();
  }

  addChange(key: Key, { before, after, postings }: UserChange): void {
    const { changeCycles, insertCycles, moveIds, addSnapshots } = this.#statements;
    const { opened, changed } = cycleChanges(before, after);
    const byPosting = new Map<TransactionId, Change>();
    for (const change of changed) {
      const { before: stored, after: cycle } = change;
      const { id, remaining, held, status, period, amount, start, end, next } = cycle;
      // When a new cycle supersedes a canceled cycle, the canceled cycle gets no posting.
      const isPosted = period === stored.period && status !== 'superseded' && next === stored.next;
      if (isPosted) byPosting.set(id, change);
      else {
        const values = [remaining, held, status, period, amount, start, end, scheduledText(next)];
        this.#add(changeCycles, ...key, stored.end, id, ...values);
      }
    }
    for (const cycle of opened) this.#add(insertCycles, ...key, ...cycleValues(cycle), this.#idsThrough);
    // A later batch at the same instant loads only live cycles. If no live cycle stores the new `ids_through`, the row
    // of the end user must store it.
    const now = instantOf(this.#idsThrough);
    const isLoadedLater = [...opened, ...changed.map((change) => change.after)].some((cycle) => isLive(cycle, now));
    if (!isLoadedLater) this.#add(moveIds, ...key);
    this.#addPostings(key, postings, byPosting);
    if (before.holds !== after.holds) this.#addHolds(key, before.holds, after.holds);
    const { transactionId, createdAt } = postings.at(-1) as Posting;
    if (!isSnapshotDue(postings, after)) return;
    this.#add(addSnapshots, ...key, transactionId, stateText({ ...after, holds: [] }, createdAt));
  }

  /** @param byPosting the changes to cycles written by the same statement as the postings; keyed by cycle ID */
  #addPostings(key: Key, postings: readonly Posting[], byPosting: Map<TransactionId, Change>): void {
    let line = 0;
    for (const [index, posting] of postings.entries()) {
      line = posting.transactionId === postings[index - 1]?.transactionId ? line + 1 : 0;
      const change = byPosting.get(posting.cycleId);
      // A posting to an earlier period of the cycle does not change the cycle.
      const carried = change?.after.period === posting.period ? change : null;
      if (carried !== null) {
        byPosting.delete(posting.cycleId);
        this.#changedByPosting += 1;
      }
      const { remaining, held, status } = newValuesOf(carried);
      this.#posted.add(...key, remaining, ...postingValues(posting, line), held, status);
    }
    assert(byPosting.size === 0, 'a cycle changes only through its postings');
  }

  /** An open hold never changes; it can only be closed. */
  #addHolds(key: Key, before: readonly Hold[], after: readonly Hold[]): void {
    const { closeHolds, openHolds } = this.#statements;
    const [stored, open] = [before, after].map((holds) => new Set(holds.map(({ id }) => id)));
    for (const hold of before) if (!open?.has(hold.id)) this.#add(closeHolds, ...key, hold.expiresAt, hold.id);
    for (const hold of after) if (!stored?.has(hold.id)) this.#add(openHolds, ...key, ...holdValues(hold));
  }

  addRecord(record: IdempotencyRecord): void {
    this.#add(this.#statements.insertRecords, ...keyOf(record), ...recordValues(record));
  }

  /**
   * Returns the writes in the order in which they must run. A recurring cycle must be stopped before another one is
   * opened, because a unique index allows only one active recurring cycle per end user. Holds must be stored before
   * snapshots, because the statement for snapshots reads the stored holds.
   */
  writes(at: Instant): Write[] {
    const { changeCycles, insertCycles, closeHolds, openHolds, moveIds, addSnapshots, insertRecords } =
      this.#statements;
    const posting = this.#posted.count === 0 ? [] : this.#postingWrites(at);
    if (this.#others.size === 0) return posting;
    return [
      ...this.#write(changeCycles, this.#idsThrough),
      ...posting,
      ...this.#write(insertCycles),
      ...this.#write(closeHolds),
      ...this.#write(openHolds),
      ...this.#write(moveIds, this.#idsThrough),
      ...this.#write(addSnapshots),
      ...this.#write(insertRecords),
    ];
  }

  #add(statement: RowsStatement, ...row: readonly Value[]): void {
    const rows = this.#others.get(statement) ?? statement.rows();
    this.#others.set(statement, rows);
    rows.add(...row);
  }

  #write(statement: RowsStatement, ...others: readonly string[]): Write[] {
    const rows = this.#others.get(statement);
    return rows === undefined ? [] : [{ query: statement.query(rows, ...others), rows: rows.count, isChecked: false }];
  }

  #postingWrites(at: Instant): Write[] {
    const { post, postPlain } = this.#statements;
    const [rows, batch] = [this.#posted, randomUUID()];
    const statement = postPlain.takes(rows) ? postPlain : post;
    return [
      { query: statement.query(rows, this.#idsThrough, at, batch, this.#changedByPosting), rows: 1, isChecked: true },
    ];
  }
}

interface Change {
  readonly before: Cycle;
  readonly after: Cycle;
}

/** The new values of a cycle. Null stands for an unchanged `held`, and for the `active` status. */
function newValuesOf(change: Change | null): { remaining: Value; held: Value; status: Value } {
  if (change === null) return UNCHANGED;
  const { before, after } = change;
  const held = after.held === before.held ? null : after.held;
  return { remaining: after.remaining, held, status: after.status === 'active' ? null : after.status };
}

const UNCHANGED = { remaining: null, held: null, status: null };
