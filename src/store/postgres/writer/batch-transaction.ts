// Prepares a batch for its COMMIT: locks and loads the end users, decides the outcomes of the commands, and collects
// the rows to write. A batch takes two round trips: one to load, and one to write and commit. On Citus, COMMIT takes a
// third round trip if this process must first count the changed rows.

import assert from 'node:assert/strict';
import { batchOf, decideBatch, EVENTS_PER_BATCH_MAX, type UserChange } from '../../../ledger/batch.ts';
import { type Command, type EndUserKey, isSameEndUser, needs, type Outcome } from '../../../ledger/command.ts';
import { isByTime } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { throughPosition } from '../../transaction-ids.ts';
import type { Connection } from '../pool/connection.ts';
import { type Key, keyOf } from '../rows/key.ts';
import { type BatchContext, lockAndLoad } from './batch-loading.ts';
import { BatchRows, type Write } from './batch-rows.ts';

/** End users that have no row to lock yet, and that the batch might create. */
export interface Missing {
  readonly missing: readonly EndUserKey[];
}

export interface Decided {
  readonly outcomes: readonly (Outcome | null)[];
  readonly writes: readonly Write[];
  /** A transaction that is stored if and only if the batch is stored; null if the batch has no such transaction. */
  readonly witness: Witness | null;
  /** Whether the batch stores idempotency records. */
  readonly hasRecords: boolean;
}

export interface Witness {
  readonly user: EndUserKey;
  readonly transactionId: TransactionId;
}

export async function decide(
  connection: Connection,
  commands: readonly Command[],
  context: BatchContext,
): Promise<Decided | Missing> {
  const batch = batchOf(commands);
  const keys = batch.users.map(keyOf);
  const loaded = await lockAndLoad(connection, batch, keys, context);
  const missing = batch.users.filter((user, index) => !loaded.isLocked[index] && canCreate(user, commands));
  if (missing.length > 0) return { missing };
  const { ids, recordedAt } = loaded;
  const moment = { now: ids.position.at, recordedAt, nextId: () => ids.next() };
  const { outcomes, changes, records } = decideBatch(batch, loaded, moment, EVENTS_PER_BATCH_MAX);
  const rows = new BatchRows(context.statements, throughPosition(ids.position));
  for (const change of changes) rows.addChange(keys[change.index] as Key, change);
  for (const record of records) rows.addRecord(record);
  return { outcomes, writes: rows.writes(moment.now), witness: witnessOf(changes), hasRecords: records.length > 0 };
}

/** Writes a batch without committing it. @throws if not every row was written */
export async function writeRows(connection: Connection, writes: readonly Write[]): Promise<void> {
  const results = await connection.send(writes.map(({ query }) => query));
  const isWhole = writes.every(({ rows }, index) => results[index]?.rowCount === rows);
  assert(isWhole, 'every statement changes the expected number of rows');
}

function canCreate(user: EndUserKey, commands: readonly Command[]): boolean {
  return commands.some((command) => isSameEndUser(command, user) && needs(command).canCreate);
}

/**
 * A renewal, a scheduled change of plan or a lapse cannot be the witness: its ID is the same in every process, so
 * another process might have stored it.
 */
function witnessOf(changes: readonly UserChange[]): Witness | null {
  for (const { user, postings } of changes) {
    const own = postings.findLast(({ kind }) => !isByTime(kind));
    if (own) return { user, transactionId: own.transactionId };
  }
  return null;
}
