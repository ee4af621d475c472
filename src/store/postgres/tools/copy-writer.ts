// Writes copied postings to a database, together with the rows that are derived from them: cycles, holds, snapshots and
// summaries. The summaries include the progress of event derivation. Adds nothing to the feed. Runs within the caller's
// transactions.

import assert from 'node:assert/strict';
import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { EMPTY_STATE } from '../../../ledger/state.ts';
import { instantOf, sequenceOf } from '../../../ledger/transaction-id.ts';
import { summaryOf } from '../../end-user-summaries.ts';
import type { Derivation } from '../../event-log.ts';
import { cycleValues, isSnapshotDue, stateText } from '../../state-text.ts';
import { throughPosition } from '../../transaction-ids.ts';
import { EVERYTHING } from '../citus/placement.ts';
import { recordValues } from '../idempotency/record-table.ts';
import { SUMMARY_COLUMNS, SUMMARY_TYPES, summaryValues } from '../journal/summary-rows.ts';
import type { Connection, Value } from '../pool/connection.ts';
import { KEY_TYPES, keyOf } from '../rows/key.ts';
import { holdValues, postingValues } from '../rows/ledger-rows.ts';
import { type RowArrays, RowsStatement } from '../rows/row-arrays.ts';
import { batchStatementsOf } from '../writer/batch-statements.ts';

/** On Citus, each of these statements can insert rows into several shards. */
const { insertCycles, insertPostings, insertRecords, insertSnapshots, openHolds } = batchStatementsOf(EVERYTHING);
const insertEndUsers = new RowsStatement(
  'insert_end_users',
  [...KEY_TYPES, 'uuid'],
  EVERYTHING.insert('end_users', 'ids_through', ['uuid']),
);

const insertSummaries = new RowsStatement(
  'insert_summaries',
  [...KEY_TYPES, ...SUMMARY_TYPES],
  EVERYTHING.insert('end_user_summaries', SUMMARY_COLUMNS, SUMMARY_TYPES),
);

export class CopyWriter {
  readonly #rows = new Map<RowsStatement, RowArrays>();
  #state = EMPTY_STATE;
  /** A posting of the latest transaction; null at the beginning of an end user. */
  #latest: Posting | null = null;

  add(user: EndUserKey, transaction: readonly [Posting, ...Posting[]]): void {
    for (const [line, posting] of transaction.entries())
      this.#insert(insertPostings, user, postingValues(posting, line));
    const [first] = transaction;
    this.#latest = first;
    this.#state = applyAll(this.#state, transaction);
    if (isSnapshotDue(transaction, this.#state))
      this.#insert(insertSnapshots, user, [first.transactionId, stateText(this.#state, first.createdAt)]);
  }

  /** Call this after the last transaction of an end user. */
  end(user: EndUserKey, derived: Pick<Derivation, 'next' | 'dueAt'>): void {
    assert(this.#latest !== null, 'every copied end user has at least one posting');
    const { transactionId: latest, createdAt } = this.#latest;
    const idsThrough = throughPosition({ at: instantOf(latest), sequence: sequenceOf(latest) });
    for (const cycle of this.#state.cycles) this.#insert(insertCycles, user, [...cycleValues(cycle), idsThrough]);
    for (const hold of this.#state.holds) this.#insert(openHolds, user, holdValues(hold));
    this.#insert(insertEndUsers, user, [idsThrough]);
    const { state, at } = derived.next;
    this.#insert(insertSummaries, user, summaryValues(derived, summaryOf(state, at), createdAt));
    this.#state = EMPTY_STATE;
    this.#latest = null;
  }

  addRecord(record: IdempotencyRecord): void {
    this.#insert(insertRecords, record, recordValues(record));
  }

  async flush(connection: Connection): Promise<void> {
    const inserts = [...this.#rows];
    const results = await connection.send(inserts.map(([statement, rows]) => statement.query(rows)));
    const isWhole = inserts.every(([, rows], index) => results[index]?.rowCount === rows.count);
    assert(isWhole, 'every row is inserted');
    this.#rows.clear();
  }

  #insert(statement: RowsStatement, user: EndUserKey, values: readonly Value[]): void {
    const rows = this.#rows.get(statement) ?? statement.rows();
    this.#rows.set(statement, rows);
    rows.add(...keyOf(user), ...values);
  }
}
