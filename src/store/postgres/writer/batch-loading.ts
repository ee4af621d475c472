// Locks the end users of a batch and loads the data that the batch needs, usually in one round trip. Loads only the due
// holds of an end user, unless a command needs all holds of that end user. Open holds therefore do not slow down
// subtractions.

import { type Batch, type LoadedBatch, NO_REFERENCED, referenceName } from '../../../ledger/batch.ts';
import { needs } from '../../../ledger/command.ts';
import { assertReadable } from '../../../ledger/cycle.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import { INSTANT_MAX, type Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { firstIdAt, instantOf, sequenceOf } from '../../../ledger/transaction-id.ts';
import { TransactionIds } from '../../transaction-ids.ts';
import type { Placement } from '../citus/placement.ts';
import { recordsOf } from '../idempotency/record-table.ts';
import { StateRows } from '../journal/state-rows.ts';
import type { Connection, Query, TextRow } from '../pool/connection.ts';
import type { DatabaseClock } from '../pool/database-clock.ts';
import { type Key, keyOf } from '../rows/key.ts';
import { postingOf, referencedOf } from '../rows/ledger-rows.ts';
import type { BatchStatements } from './batch-statements.ts';

export interface BatchContext {
  readonly clock: DatabaseClock;
  readonly begin: Placement['begin'];
  readonly statements: BatchStatements;
}

interface LoadedUnderLock extends LoadedBatch {
  /** For each end user in `batch.users`, whether it has a row in `end_users`. */
  readonly isLocked: readonly boolean[];
  /** Generates IDs that sort after all existing IDs of the batch's end users. */
  readonly ids: TransactionIds;
  /** The age of new idempotency records is counted from this instant. */
  readonly recordedAt: Instant;
}

/** @param keys the keys of `batch.users`, in the same order */
export async function lockAndLoad(
  connection: Connection,
  batch: Batch,
  keys: readonly Key[],
  { clock, begin, statements }: BatchContext,
): Promise<LoadedUnderLock> {
  const holdsOf = (users: readonly number[], after: Instant, until: Instant): Query => {
    const rows = statements.holds.rows();
    for (const user of users) rows.add(...(keys[user] as Key));
    return statements.holds.query(rows, after, until);
  };
  const users = statements.lock.rows();
  for (const key of keys) users.add(...key);
  const whole = usersWithAllHolds(batch);
  // The query for due holds is sent before the instant of the batch is known. The query therefore uses `clock.soon`,
  // which is usually later than the instant of the batch.
  const dueUntil = clock.soon;
  const { load } = statements;
  const range = [clock.latest, dueUntil];
  const asked = {
    // On Citus, one function locks and reads.
    locked: load === null ? statements.lock.query(users) : load.query(users, ...range),
    // Read the clock after taking the locks: otherwise, a batch that held the locks earlier could have a later instant.
    now: clock.query,
    states: load === null ? statements.states.query(users, ...range) : null,
    holds: whole.length === 0 ? null : holdsOf(whole, dueUntil, INSTANT_MAX),
    records: recordsQuery(batch, statements),
    referenced: referencedQuery(batch, keys, statements),
  };
  const queries = [...begin, ...Object.values(asked).filter((query) => query !== null)];
  const results = await connection.send(queries);
  const rowsOf = (query: Query | null) => (query === null ? [] : (results[queries.indexOf(query)]?.rows ?? []));

  const rows = [...rowsOf(asked.locked), ...rowsOf(asked.states)];
  const isLocked = Array<boolean>(keys.length).fill(false);
  const ids = idsBehind(rows, clock, clock.read(rowsOf(asked.now)));
  const states = keys.map(() => new StateRows());
  const addRows = (rows: readonly TextRow[], of: readonly number[] | null) => {
    for (const [place, , ...columns] of rows) {
      const index = of === null ? Number(place) - 1 : (of[Number(place) - 1] as number);
      // The rows of end users come first, and have no `cycle_id`. An end user that had no row when the locks were taken
      // is treated as new, even if another process has added the row in the meantime.
      if ((columns[0] ?? null) === null) isLocked[index] = true;
      else if (isLocked[index]) states[index]?.add(columns, assertReadable);
    }
  };
  addRows(rows, null);
  addRows(rowsOf(asked.holds), whole);
  const now = ids.position.at;
  if (now > dueUntil) {
    const others = [...keys.keys()].filter((index) => !whole.includes(index));
    const [late] = await connection.send([holdsOf(others, dueUntil, now)]);
    addRows(late?.rows ?? [], others);
  }
  return {
    isLocked,
    ids,
    recordedAt: clock.machineTime(rowsOf(asked.now), now),
    states: states.map((rows) => rows.state()),
    records: recordsOf(rowsOf(asked.records)),
    referenced: referencedIn(rowsOf(asked.referenced), batch, isLocked),
  };
}

function usersWithAllHolds({ commands, userOf }: Batch): readonly number[] {
  const users = new Set<number>();
  commands.forEach((command, index) => {
    if (needs(command).allHolds) users.add(userOf[index] as number);
  });
  return [...users];
}

/** Returns null if no command has an idempotency key. */
function recordsQuery({ commands }: Batch, { records }: BatchStatements): Query | null {
  const rows = records.rows();
  for (const command of commands) {
    const { idempotencyKey } = needs(command);
    if (idempotencyKey !== null) rows.add(...keyOf(command), idempotencyKey);
  }
  return rows.count === 0 ? null : records.query(rows);
}

/** Returns null if no command refunds a transaction. */
function referencedQuery({ references }: Batch, keys: readonly Key[], { referenced }: BatchStatements): Query | null {
  if (references.length === 0) return null;
  const rows = referenced.rows();
  for (const { user, transaction } of references) rows.add(...(keys[user] as Key), transaction);
  return referenced.query(rows);
}

function referencedIn(
  rows: readonly TextRow[],
  { references }: Batch,
  isLocked: readonly boolean[],
): LoadedBatch['referenced'] {
  if (rows.length === 0) return NO_REFERENCED;
  const postings = references.map((): Posting[] => []);
  for (const [place, ...columns] of rows) postings[Number(place) - 1]?.push(postingOf(columns));
  const found = new Map<string, Referenced>();
  for (const [index, reference] of references.entries()) {
    const referenced = referencedOf(postings[index] ?? [], reference.transaction);
    if (referenced !== null && isLocked[reference.user]) found.set(referenceName(reference), referenced);
  }
  return found;
}

/**
 * Generates IDs that sort after all IDs of the loaded rows. The IDs of cycles that are not loaded need no check: these
 * cycles have ended, so only batches at earlier instants can have changed them.
 *
 * @param rows each row begins with a position and `ids_through`; `ids_through` can be null
 */
function idsBehind(rows: readonly TextRow[], clock: DatabaseClock, time: Instant): TransactionIds {
  let latest = firstIdAt(clock.notBefore(time));
  for (const [, idsThrough] of rows) if (idsThrough && idsThrough > latest) latest = idsThrough;
  const ids = new TransactionIds({ at: instantOf(latest), sequence: sequenceOf(latest) });
  // If the clock was set back, all batches have the same instant until the clock has caught up, and could use up the
  // IDs of that instant.
  if (ids.isRunningShort) ids.moveTo(clock.notBefore(ids.position.at + 1));
  // From now on, this process must not issue an earlier instant.
  clock.notBefore(ids.position.at);
  return ids;
}
