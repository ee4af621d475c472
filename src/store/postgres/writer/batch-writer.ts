// Writes batches to PostgreSQL, and retries failed batches if that is safe.
//
//   decide ──▶ write and COMMIT ──▶ done
//    │             └── connection lost, or a warning ──▶ lock an end user of the batch, look for its witness
//    │                      ├── found, and confirmed ──▶ done
//    │                      ├── not found ──▶ retry
//    │                      └── still unknown at the time limit ──▶ OutcomeUnknown
//    ├── the worker of the shard cannot be reached, twice ──▶ StoreUnavailable; the shard is unreachable
//    ├── deadlock, serialization failure, connection lost ──▶ nothing was changed: retry, up to a limit
//    └── any other error ──▶ StoreUnavailable, or Internal, which stops the ledger

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command, EndUserKey, Outcome } from '../../../ledger/command.ts';
import type { Lanes } from '../../ledger-store.ts';
import { StoreFault } from '../../store-fault.ts';
import type { Part } from '../citus/placement.ts';
import type { Connection, Query } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { type Heartbeat, STANDBY_AWAY } from '../pool/heartbeat.ts';
import { faultOf, isConnectionLost, isWorkerAway, isWorthRetrying, mayBeWorkerAway } from '../pool/postgres-error.ts';
import { BEGIN, COMMIT_BATCH, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { type Key, keyOf } from '../rows/key.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import type { BatchContext } from './batch-loading.ts';
import { type BatchStatements, batchStatementsOf } from './batch-statements.ts';
import { type Decided, decide, type Witness, writeRows } from './batch-transaction.ts';
import { LaneSessions } from './lane-sessions.ts';
import { createShardFunctions } from './shard-functions.ts';

const TRIES_MAX = 10;
/**
 * The pause before a retry is this time, multiplied by the number of tries so far and by a random number from 0 to 1.
 */
const BACKOFF_MS = 20;
/**
 * A batch is not retried if its first try began longer ago than this. If PostgreSQL hangs, each try takes seconds, and
 * many clients wait.
 */
const TRIES_MS = 6_000;

/** How long to search for a batch whose COMMIT was not confirmed. */
const SEARCH_MS = 8_000;
/**
 * How long to search if a Citus worker cannot be reached. This time is shorter than `SEARCH_MS`, because all other
 * batches wait for the search if this process writes only one batch at a time.
 */
const SEARCH_AWAY_MS = 2_000;
const SEARCH_PAUSE_MS = 200;
/**
 * The search for a batch repeats a lookup, and each step of a lookup has this timeout. The timeouts in `BEGIN_LOOK` are
 * shorter, so that the server gives up first.
 */
const LOOK_MS = 2_000;
const BEGIN_LOOK = [BEGIN, ...setLocal({ statement_timeout: '1500ms', lock_timeout: '1s' })];

type Outcomes = readonly (Outcome | null)[];

/** Returns additional statements for a batch's transaction. A statement must fail if it cannot make its change. */
type WriteBeside = (outcomes: Outcomes) => readonly Query[];

export class BatchWriter {
  readonly lanes: Lanes;
  readonly #sessions: LaneSessions;
  readonly #database: LedgerDatabase;
  readonly #heartbeat: Heartbeat;
  readonly #statements: ReadonlyMap<Part, BatchStatements>;

  constructor(pool: ConnectionPool, database: LedgerDatabase, heartbeat: Heartbeat, lanes: Lanes) {
    const { placement } = database;
    this.lanes = lanes;
    this.#sessions = new LaneSessions(pool);
    this.#database = database;
    this.#heartbeat = heartbeat;
    this.#statements = new Map(placement.parts.map((part) => [part, batchStatementsOf(part)]));
  }

  /** On Citus, creates the functions that batches call, if they do not exist yet. Must be called before `write`. */
  async prepare(): Promise<void> {
    const functions = [...this.#statements.values()].flatMap((statements) => statements.functions);
    await createShardFunctions(this.#database.pool, functions);
  }

  /**
   * @param onDecided called when the next batch of the lane can start on the same connection; not called if the next
   * batch must wait for the outcome
   * @throws StoreFault
   */
  async write(commands: readonly Command[], onDecided: () => void, beside: WriteBeside = () => []): Promise<Outcomes> {
    const [first] = commands;
    if (first === undefined) return [];
    const { placement, reach } = this.#database;
    const part = placement.partOf(first);
    const fault = reach.faultOf(part);
    if (fault !== null) throw fault;
    const deadline = performance.now() + TRIES_MS;
    let lane = part.isShard ? null : this.lanes.of(first);
    let mayHaveRecords = false;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(commands, part, lane, { onDecided, beside });
      } catch (error) {
        mayHaveRecords ||= error instanceof CommitLost && error.decided.witness === null && error.decided.hasRecords;
        const isLast = attempt >= TRIES_MAX || performance.now() > deadline;
        const stored = await this.#settle(error, part, attempt, isLast).catch((fault) => {
          throw mayHaveRecords ? unknownOutcome(fault) : fault;
        });
        if (stored !== null) return stored;
        // A retried batch does not share its connection: if the retry fails, no other batch fails with it.
        lane = null;
      }
      await sleep(Math.random() * BACKOFF_MS * attempt);
    }
  }

  /**
   * Marks the part as unreachable if its worker cannot be reached. The first failure does not count, because the worker
   * might have restarted: for the second try, the coordinator opens a new connection to the worker. If the worker might
   * not answer at all, this method waits for a probe, because the next batch of the part would also time out.
   *
   * @throws StoreFault if the worker of the part cannot be reached
   */
  async #noteAway(error: unknown, part: Part, attempt: number): Promise<void> {
    const { reach } = this.#database;
    if (isWorkerAway(error) && attempt > 1) throw reach.lost(part, error as Error);
    if (error instanceof CommitLost) void reach.suspect();
    if (!mayBeWorkerAway(error)) return;
    await reach.suspect();
    const fault = reach.faultOf(part);
    if (fault !== null) throw fault;
  }

  /**
   * @returns the outcomes if the batch is stored although its COMMIT was not confirmed; null if the batch must be
   * retried
   * @throws StoreFault
   */
  async #settle(error: unknown, part: Part, attempt: number, isLast: boolean): Promise<Outcomes | null> {
    if (part.isShard) await this.#noteAway(error, part, attempt);
    const isLost = error instanceof CommitLost;
    const isByWorker = part.isShard && isWorkerAway(error);
    if (isLost || (isConnectionLost(error) && !isByWorker)) this.#heartbeat.suspectStandby();
    if (isLost && (await this.#isStored(error, part))) return error.decided.outcomes;
    // The transaction was rolled back, or the batch has no witness. In both cases, no request has changed a balance.
    if (isLost && isLast) throw new StoreFault('StoreUnavailable', error.message);
    const isUndone = isLost || isWorthRetrying(error) || isConnectionLost(error);
    if (!isUndone || isLast) throw faultOf(error);
    return null;
  }

  /**
   * Returns whether a batch was stored even though its COMMIT was not confirmed. First locks the row of an end user of
   * the batch. This is possible only after the transaction of the batch has ended.
   *
   * @throws StoreFault `OutcomeUnknown` if the outcome cannot be determined in time
   */
  async #isStored({ decided: { witness }, message }: CommitLost, part: Part): Promise<boolean> {
    // A batch without a witness contains only automatic events and the idempotency records of requests that caused no
    // transaction. If it was stored, deciding it again writes nothing.
    if (witness === null) return false;
    const began = performance.now();
    let searchMs = SEARCH_MS;
    let reason = message;
    while (performance.now() < began + searchMs) {
      try {
        return await this.#look(witness, this.#statementsOf(part));
      } catch (error) {
        if (part.isShard && isWorkerAway(error)) searchMs = SEARCH_AWAY_MS;
        else this.#heartbeat.suspectStandby();
        reason = (error as Error).message;
      }
      await sleep(SEARCH_PAUSE_MS);
    }
    const text = `${message}; Scrip cannot find out whether the batch was stored: ${reason}`;
    throw new StoreFault('OutcomeUnknown', text, { isPartial: searchMs === SEARCH_AWAY_MS });
  }

  /**
   * Looks for the witness of a batch, and waits until a standby has the batch. The batch's COMMIT might have stopped
   * waiting for a standby, so the batch might exist only on the primary. In the write-ahead log, the row lock of the
   * lookup comes after the batch, so a standby that confirms the lookup's COMMIT has the batch.
   */
  async #look({ user, transactionId }: Witness, { lock, find }: BatchStatements): Promise<boolean> {
    const connection = await this.#sessions.connect();
    try {
      // While the standby is unreachable, the COMMIT of this lookup would wait for the standby.
      if (await this.#heartbeat.isStandbyAway(connection)) throw new Error(STANDBY_AWAY);
      const users = lock.rows();
      users.add(...keyOf(user));
      const looking = [...BEGIN_LOOK, lock.query(users), find([...keyOf(user), transactionId])];
      const found = (await connection.send(looking, LOOK_MS)).at(-1);
      if (found?.rows.length === 0) return false;
      const warning = await connection.commit(COMMIT_BATCH, LOOK_MS);
      if (warning !== null) throw new Error(warning);
      return true;
    } finally {
      connection.release(false);
    }
  }

  #attempt(
    commands: readonly Command[],
    part: Part,
    lane: number | null,
    { onDecided, beside }: { onDecided: () => void; beside: WriteBeside },
  ): Promise<Outcomes> {
    return this.#sessions.run(lane, async (connection, open) => {
      if (await this.#heartbeat.isStandbyAway(connection)) throw new StoreFault('StoreUnavailable', STANDBY_AWAY);
      const { clock, placement } = this.#database;
      const context = { clock, begin: [...placement.begin, ...part.stay], statements: this.#statementsOf(part) };
      let decided = await decide(connection, commands, context);
      if ('missing' in decided) {
        await addEndUsers(connection, decided.missing, context);
        decided = await decide(connection, commands, context);
      }
      assert(!('missing' in decided), 'the row of an end user is never deleted');
      const others = beside(decided.outcomes).map((query) => ({ query, rows: 1, isChecked: false }));
      const writes = [...decided.writes, ...others];
      // A repeated response must not be sent before a standby has the write that it reports. The COMMIT of this batch
      // waits for the standby, because the locks of the batch come after the write in the write-ahead log.
      const isRepeated = decided.outcomes.some((outcome) => outcome?.replayOf !== undefined);
      if (writes.length === 0 && !isRepeated) await connection.send([ROLLBACK]);
      else {
        const committed = commit(connection, { ...decided, writes }, part);
        open();
        if (lane !== null) onDecided();
        await committed;
      }
      return decided.outcomes;
    });
  }

  #statementsOf(part: Part): BatchStatements {
    return this.#statements.get(part) as BatchStatements;
  }
}

/**
 * Inserts a row for each new end user, so that batches can lock the row. Uses a separate transaction. Inserts the rows
 * in the order in which batches take locks.
 */
async function addEndUsers(
  connection: Connection,
  users: readonly EndUserKey[],
  { begin, statements }: BatchContext,
): Promise<void> {
  const additions = users.map(keyOf).sort(lockOrder).map(statements.addEndUser);
  await connection.send([ROLLBACK, ...begin, ...additions, ...COMMIT_BATCH]);
}

/** @throws CommitLost if it is unknown whether the batch is stored */
async function commit(connection: Connection, decided: Decided, part: Part): Promise<void> {
  const { writes } = decided;
  // If the statements check the row counts themselves, COMMIT is sent without waiting for the writes. On a shard, the
  // writes are a step of their own, because an error means more if it can be an error of COMMIT.
  const writing = part.isShard ? writeRows(connection, writes) : null;
  if (part.isShard && !writes.every(({ isChecked }) => isChecked)) await writing;
  const queries = part.isShard ? [] : writes.map(({ query }) => query);
  const committing = connection.commit([...queries, ...COMMIT_BATCH]);
  const [written, committed] = await Promise.allSettled([writing, committing]);
  // If a write fails, the server does not commit. If it does not answer, it might have committed.
  if (written.status === 'rejected') {
    const { reason } = written;
    throw isConnectionLost(reason) && !isWorkerAway(reason) ? new CommitLost(decided, reason.message) : reason;
  }
  if (committed.status === 'rejected') {
    const { reason } = committed;
    // If the worker fails during COMMIT, Citus reports XX000, even if the worker has committed.
    const isUnknown = isConnectionLost(reason) || (part.isShard && mayBeWorkerAway(reason));
    throw isUnknown ? new CommitLost(decided, reason.message) : reason;
  }
  if (committed.value !== null) throw new CommitLost(decided, committed.value);
}

/** The fault for a batch without a transaction, if an earlier try might have stored its idempotency records. */
function unknownOutcome(fault: StoreFault): StoreFault {
  const { code, message, isPartial } = fault;
  return code === 'StoreUnavailable' ? new StoreFault('OutcomeUnknown', message, { isPartial }) : fault;
}

/**
 * Thrown if COMMIT was not confirmed: for example, PostgreSQL did not reply, or replied with a warning. PostgreSQL
 * sends a warning if the wait for a standby was cut short.
 */
class CommitLost extends Error {
  readonly decided: Decided;

  constructor(decided: Decided, reason: string) {
    super(`COMMIT was not confirmed: ${reason}`);
    this.decided = decided;
  }
}

function lockOrder(a: Key, b: Key): number {
  return a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : 1);
}
