// Runs a batch as one transaction: locks the end users, loads their cycles, lets the ledger decide, writes and commits.
// This takes two round trips: lock and load, write and commit. On Citus, where the server cannot count the changed
// rows, COMMIT takes a third.

import assert from 'node:assert/strict';
import { type Batch, batchOf, decideBatch, type LoadedBatch, type UserChange } from '../../../ledger/batch.ts';
import { type Command, type EndUserKey, isSameEndUser, needs, type Outcome } from '../../../ledger/command.ts';
import { assertReadable, type Cycle, inBurnOrder } from '../../../ledger/cycle.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { firstIdAt, instantOf, sequenceOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import { TransactionIds, throughPosition } from '../../transaction-ids.ts';
import type { Placement } from '../citus/placement.ts';
import { recordsOf } from '../idempotency/record-table.ts';
import type { Connection, QueryResult, TextRow } from '../pool/connection.ts';
import type { DatabaseClock } from '../pool/database-clock.ts';
import { COMMIT_BATCH } from '../pool/transactions.ts';
import { type Key, keyOf } from '../rows/key.ts';
import { cycleOf } from '../rows/ledger-rows.ts';
import { BatchRows, type Write } from './batch-rows.ts';
import type { BatchStatements } from './batch-statements.ts';

/** Maximum number of events that one batch stores; see the same limit in the SQLite writer. */
const EVENTS_PER_BATCH_MAX = 1_000;

/** End users that the batch may create, and that have no row to lock yet. */
export interface Missing {
  readonly missing: readonly EndUserKey[];
}

export interface Decided {
  readonly outcomes: readonly (Outcome | null)[];
  /** Empty if nothing changes. */
  readonly writes: readonly Write[];
  /** A transaction that is stored if and only if the batch is; null if the batch has none. */
  readonly witness: Witness | null;
}

export interface Witness {
  readonly user: EndUserKey;
  readonly transactionId: TransactionId;
}

export interface BatchContext {
  readonly clock: DatabaseClock;
  readonly begin: Placement['begin'];
  readonly statements: BatchStatements;
}

/** What a batch has loaded under its locks. */
interface LoadedUnderLock extends LoadedBatch {
  /** Whether each end user has a row, by the index of the end user. */
  readonly isLocked: readonly boolean[];
  /** Generates ids later than all existing ones of these end users. */
  readonly ids: TransactionIds;
}

/** Begins a transaction, locks and loads the end users, and decides the commands. */
export async function decide(
  connection: Connection,
  commands: readonly Command[],
  context: BatchContext,
): Promise<Decided | Missing> {
  const batch = batchOf(commands);
  const keys = batch.users.map(keyOf);
  const loaded = loadedOf(await lockAndLoad(connection, batch, keys, context), context.clock, keys.length);
  const missing = batch.users.filter((user, index) => !loaded.isLocked[index] && canCreate(user, commands));
  if (missing.length > 0) return { missing };
  const { ids } = loaded;
  const moment = { now: ids.position.at, nextId: () => ids.next() };
  const { outcomes, changes, records } = decideBatch(batch, loaded, moment, EVENTS_PER_BATCH_MAX);
  const rows = new BatchRows(context.statements, throughPosition(ids.position));
  for (const change of changes) rows.addChange(keys[change.index] as Key, change);
  for (const record of records) rows.addRecord(record);
  return { outcomes, writes: rows.writes(moment.now), witness: witnessOf(changes) };
}

/**
 * Writes a batch and commits it, but only if every row was written.
 *
 * @param isCounted whether the server counts the rows, so that COMMIT can be sent with the writes
 * @returns a warning; null if the COMMIT is confirmed without one
 */
export async function writeAndCommit(
  connection: Connection,
  writes: readonly Write[],
  isCounted: boolean,
): Promise<string | null> {
  const writing = writes.map(({ query }) => query);
  if (isCounted) return connection.commit([...writing, ...COMMIT_BATCH]);
  const results = await connection.send(writing);
  const isWhole = writes.every(({ rows }, index) => results[index]?.rowCount === rows);
  assert(isWhole, 'a statement changes each of its rows once');
  return connection.commit(COMMIT_BATCH);
}

/** @returns the results of the locks, the clock, the cycles and, if keys were looked up, the records */
async function lockAndLoad(
  connection: Connection,
  { commands }: Batch,
  keys: readonly Key[],
  { clock, begin, statements }: BatchContext,
): Promise<readonly QueryResult[]> {
  const { lock, cycles, records } = statements;
  const users = lock.rows();
  for (const key of keys) users.add(...key);
  const asked = records.rows();
  for (const command of commands) {
    const { idempotencyKey } = needs(command);
    if (idempotencyKey !== null) asked.add(...keyOf(command), idempotencyKey);
  }
  const results = await connection.send([
    ...begin,
    lock.query(users),
    // Read the clock after taking the locks, so that a batch that held them earlier does not have a later instant.
    clock.query,
    cycles.query(users, clock.latest),
    ...(asked.count === 0 ? [] : [records.query(asked)]),
  ]);
  return results.slice(begin.length);
}

function loadedOf(results: readonly QueryResult[], clock: DatabaseClock, endUsers: number): LoadedUnderLock {
  const [locked = [], clocked = [], cycles = [], records = []] = results.map(({ rows }) => rows);
  const isLocked = Array<boolean>(endUsers).fill(false);
  for (const [place] of locked) isLocked[Number(place) - 1] = true;
  const ids = idsBehind(cycles, clock.notBefore(clock.read(clocked)));
  // After the clock was set back, the instant stays the same for long. Move on before its ids run out.
  if (ids.isRunningShort) ids.moveTo(clock.notBefore(ids.position.at + 1));
  // After an end user has seen this instant, this process must not issue an earlier one.
  clock.notBefore(ids.position.at);
  const states = cyclesByPlace(cycles, isLocked).map((those) => ({ cycles: those }));
  return { isLocked, ids, states, records: recordsOf(records) };
}

/**
 * Ids that sort after those of all loaded cycles. Cycles that are not loaded have ended, so no batch at `now` or later
 * has changed them.
 */
function idsBehind(rows: readonly TextRow[], now: Instant): TransactionIds {
  let latest = firstIdAt(now);
  for (const [, idsThrough] of rows as readonly (readonly string[])[])
    if ((idsThrough as string) > latest) latest = idsThrough as string;
  return new TransactionIds({ at: instantOf(latest), sequence: sequenceOf(latest) });
}

/**
 * An end user without a row is not locked and counts as unknown, even if another process has added the row meanwhile.
 */
function cyclesByPlace(rows: readonly TextRow[], isLocked: readonly boolean[]): Cycle[][] {
  const byPlace = isLocked.map((): Cycle[] => []);
  for (const [place, , ...columns] of rows) {
    const index = Number(place) - 1;
    if (!isLocked[index]) continue;
    const cycle = cycleOf(columns);
    assertReadable(cycle);
    byPlace[index]?.push(cycle);
  }
  return byPlace.map(inBurnOrder);
}

function canCreate(user: EndUserKey, commands: readonly Command[]): boolean {
  return commands.some((command) => isSameEndUser(command, user) && needs(command).canCreate);
}

/** A renewal cannot be the witness: it has the same id in every process, so another process may have stored it. */
function witnessOf(changes: readonly UserChange[]): Witness | null {
  for (const { user, postings } of changes) {
    const own = postings.findLast(({ kind }) => kind !== 'renew');
    if (own) return { user, transactionId: own.transactionId };
  }
  return null;
}
