// One batch as one transaction: lock the end users, load what they hold, let the ledger decide, write, commit. Two round
// trips: lock and load, write and commit. On Citus the COMMIT is one of its own.

import assert from 'node:assert/strict';
import type { PoolClient } from 'pg';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import { assertCycle, type Cycle, inBurnOrder } from '../../ledger/cycle.ts';
import { batchOf, fold, type UserChange } from '../../ledger/fold.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import { idempotencyOf, NO_RECORDS } from '../../ledger/idempotency.ts';
import type { Instant } from '../../ledger/instant.ts';
import { loadedBehind } from '../../ledger/movement.ts';
import { instantOf, sequenceOf, type TransactionId } from '../../ledger/transaction-id.ts';
import { TransactionIds } from '../transaction-ids.ts';
import { answersOf, keysAsked } from './answer-rows.ts';
import { type Write, writesOf } from './batch-writes.ts';
import type { DatabaseClock } from './database-clock.ts';
import { type Key, keyArrays, keyOf } from './key.ts';
import { cycleOfText, exactInteger } from './rows.ts';
import { begin, commit, query, type Statement, type Statements } from './statements.ts';
import { type StatementResult, sendStep, type TextRow } from './step.ts';

/** Missed periods that one batch enters: see the same bound of the SQLite writer. */
const PERIODS_PER_BATCH_MAX = 1_000;

/** End users that are to be given something, and have no row to lock yet. */
export interface Missing {
  readonly missing: readonly EndUserKey[];
}

export interface Decided {
  readonly outcomes: readonly (Outcome | null)[];
  /** In this order; none when nothing has changed. */
  readonly writes: readonly Write[];
  /** A transaction that is there if and only if the batch is; null when there is none. */
  readonly witness: Witness | null;
}

export interface Witness {
  readonly user: EndUserKey;
  readonly transactionId: TransactionId;
}

export interface BatchOptions {
  readonly statements: Statements;
  readonly isPrepared: boolean;
  readonly isCitus: boolean;
  /** Whether the chains of end users are kept. */
  readonly isChained: boolean;
}

export class BatchTransaction {
  readonly #client: PoolClient;
  readonly #statements: Statements;
  readonly #clock: DatabaseClock;
  readonly #now: Statement;
  readonly #isPrepared: boolean;
  readonly #isCitus: boolean;
  readonly #isChained: boolean;

  constructor(client: PoolClient, clock: DatabaseClock, options: BatchOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#now = { name: 'now', text: `SELECT ${clock.now}`, types: [] };
    this.#statements = options.statements;
    this.#isPrepared = options.isPrepared;
    this.#isCitus = options.isCitus;
    this.#isChained = options.isChained;
  }

  /** Begins, and decides under the locks. */
  async decide(commands: readonly Command[]): Promise<Decided | Missing> {
    const batch = batchOf(commands);
    const keys = batch.users.map(keyOf);
    const { now, isLocked, chains, rows, answers } = await this.#lockAndLoad(keys, commands);
    const missing = batch.users.filter(
      (user, place) => !isLocked[place] && commands.some((command) => leavesRow(command) && isSame(command, user)),
    );
    if (missing.length > 0) return { missing };
    const ids = idsAfter(now, rows);
    // An instant that lasts long, on a clock that was set back, is left before its ids run out.
    if (ids.isRunningShort) ids.moveTo(this.#clock.notBefore(ids.position.at + 1));
    // What these end users have been told the time is, no reader of this process is told an earlier one.
    this.#clock.notBefore(ids.position.at);
    const moment = { now: ids.position.at, nextId: () => ids.next() };
    const loaded = { cycles: cyclesByPlace(rows, isLocked), answers };
    const folded = fold(batch, loaded, moment, PERIODS_PER_BATCH_MAX);
    return {
      outcomes: folded.outcomes,
      writes: writesOf(folded, { keys, chains }, this.#statements, {
        isPrepared: this.#isPrepared,
        isChained: this.#isChained,
      }),
      witness: witnessOf(folded.changes),
    };
  }

  async #lockAndLoad(keys: readonly Key[], commands: readonly Command[]) {
    const arrays = keyArrays(keys).literals();
    const { lock, cycles, answers: asking } = this.#statements;
    const asked = keysAsked(asking, commands);
    const beginning = begin({ isPrepared: this.#isPrepared, isCitus: this.#isCitus });
    const results = await sendStep(this.#client, [
      ...beginning,
      query(lock, arrays, this.#isPrepared),
      // Asked for behind the locks: whoever held them before has an earlier instant.
      query(this.#now, [], this.#isPrepared),
      query(cycles, [...arrays, loadedBehind(this.#clock.latest)], this.#isPrepared),
      ...(asked.count === 0 ? [] : [query(asking, asked.literals(), this.#isPrepared)]),
    ]);
    const [locked, clock, held, answered] = results.slice(beginning.length) as Loading;
    const isLocked = keys.map(() => false);
    const chains: (ChainHash | null)[] = keys.map(() => null);
    for (const [place, chain] of locked.rows) {
      isLocked[Number(place) - 1] = true;
      // Empty where there is no posting yet; null where no chain is kept.
      chains[Number(place) - 1] = chain as ChainHash | null;
    }
    const answers = answered === undefined ? NO_RECORDS : answersOf(answered.rows);
    const now = exactInteger(clock.rows[0]?.[0] as string);
    return { now: this.#clock.notBefore(now), isLocked, chains, rows: held.rows.map(loadedOf), answers };
  }

  /**
   * Writes, and commits only what is written in full. All of it is sent at once, but for Citus.
   *
   * @returns what confirms the COMMIT
   */
  async commit({ writes }: Decided): Promise<StatementResult> {
    const writing = writes.map((write) => write.query);
    const committing = commit(this.#isPrepared);
    const written = this.#isCitus ? await sendStep(this.#client, writing) : null;
    if (written !== null) assertWritten(writes, written);
    const results = await sendStep(this.#client, written === null ? [...writing, ...committing] : committing);
    if (written === null) assertWritten(writes, results);
    return results.at(-1) as StatementResult;
  }
}

function assertWritten(writes: readonly Write[], results: readonly StatementResult[]): void {
  writes.forEach(({ rowCount }, index) => {
    assert(results[index]?.rowCount === rowCount, 'a statement concerns one row for each that it is given');
  });
}

type Loading = [locked: StatementResult, clock: StatementResult, held: StatementResult, answered?: StatementResult];

/** A cycle of an end user of the batch. */
interface LoadedRow {
  /** Which one, counted from 0. */
  readonly index: number;
  /** The last transaction that touched the cycle; null when it came from elsewhere, before all that the clock gives out. */
  readonly latest: TransactionId | null;
  readonly cycle: Cycle;
}

function loadedOf([place, latest, ...columns]: TextRow): LoadedRow {
  return { index: Number(place) - 1, latest: latest as TransactionId | null, cycle: cycleOfText(columns) };
}

/** Not a renewal: those have the same id in every process, so another one may have entered it. */
function witnessOf(changes: readonly UserChange[]): Witness | null {
  for (const { user, postings } of changes) {
    const own = postings.findLast(({ kind }) => kind !== 'renew');
    if (own) return { user, transactionId: own.transactionId };
  }
  return null;
}

/**
 * Ids that come after every one that these end users have. Each is named by the cycles that it touched; those that are
 * not loaded have ended, and so have no id that is as late as `now`.
 */
function idsAfter(now: Instant, rows: readonly LoadedRow[]): TransactionIds {
  let position = { at: now, sequence: 0 };
  for (const { latest } of rows) {
    if (latest === null) continue;
    const [at, sequence] = [instantOf(latest), sequenceOf(latest)];
    if (at > position.at || (at === position.at && sequence > position.sequence)) position = { at, sequence };
  }
  return new TransactionIds(position);
}

/** Who has no row is not locked, and counts as never heard of, even if somebody else has added one meanwhile. */
function cyclesByPlace(rows: readonly LoadedRow[], isLocked: readonly boolean[]): Cycle[][] {
  const byPlace = isLocked.map((): Cycle[] => []);
  for (const { index, cycle } of rows) {
    if (!isLocked[index]) continue;
    assertCycle(cycle);
    byPlace[index]?.push(cycle);
  }
  for (const cycles of byPlace) inBurnOrder(cycles);
  return byPlace;
}

/** What can make something out of nothing, or has its answer kept. The rest, of an end user never heard of, is refused without a row. */
function leavesRow(command: Command): boolean {
  return command.kind === 'add' || command.kind === 'start-cycle' || idempotencyOf(command) !== null;
}

function isSame(a: EndUserKey, b: EndUserKey): boolean {
  return a.account === b.account && a.endUser === b.endUser;
}
