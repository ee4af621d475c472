// One batch as one transaction, up to its COMMIT: lock the end users, load what they hold, let the ledger decide, write.
// Three round trips: lock and load, write, commit.

import assert from 'node:assert/strict';
import type { PoolClient, QueryResult } from 'pg';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import { assertCycle, burnOrder, type Cycle } from '../../ledger/cycle.ts';
import { batchOf, fold, type UserChange } from '../../ledger/fold.ts';
import type { Instant } from '../../ledger/instant.ts';
import { instantOf, sequenceOf, type TransactionId } from '../../ledger/transaction-id.ts';
import { TransactionIds } from '../transaction-ids.ts';
import { bucketOf } from './bucket.ts';
import { columnsOf, pipelined } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { type CycleRow, cycleOf } from './rows.ts';
import { query, type Statement, type Statements } from './statements.ts';

/** Missed periods that one batch enters: see the same bound of the SQLite writer. */
const PERIODS_PER_BATCH_MAX = 1_000;

/**
 * Shorter than the client's own timeout, so that it is the server that gives up and rolls back. A client that the server
 * hears no more of would hold its locks for hours, until TCP gives up.
 */
export const BEGIN = `BEGIN; SET LOCAL statement_timeout = '4s'; SET LOCAL lock_timeout = '3s';
  SET LOCAL idle_in_transaction_session_timeout = '5s'`;

/** A COMMIT that waits for a standby must not be cut short: it would then count as done without the standby. */
export const BEFORE_COMMIT = `SET LOCAL statement_timeout = 0`;

/** End users that are to be given something, and have no row to lock yet. */
export interface Missing {
  readonly missing: readonly EndUserKey[];
}

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  readonly isEmpty: boolean;
  /** A transaction that is there if and only if the batch is; null when there is none. */
  readonly witness: Witness | null;
}

export interface Witness {
  readonly user: EndUserKey;
  readonly transactionId: TransactionId;
}

type Key = readonly [bucket: number, account: number, endUser: string];

export class BatchTransaction {
  readonly #client: PoolClient;
  readonly #statements: Statements;
  readonly #clock: DatabaseClock;
  readonly #isPrepared: boolean;

  constructor(client: PoolClient, statements: Statements, clock: DatabaseClock, isPrepared: boolean) {
    this.#client = client;
    this.#statements = statements;
    this.#clock = clock;
    this.#isPrepared = isPrepared;
  }

  /** @returns what is left to be committed, or to be added first */
  async run(commands: readonly Command[]): Promise<Written | Missing> {
    const batch = batchOf(commands);
    const { now, latest, cycles } = await this.#lockAndLoad(batch.users);
    const unlocked = batch.users.filter((user) => !latest.has(nameOf(user)));
    const missing = unlocked.filter((user) => commands.some((command) => opens(command) && isSame(command, user)));
    if (missing.length > 0) return { missing };
    const ids = idsAfter(now, latest.values());
    // An instant that lasts long, on a clock that was set back, is left before its ids run out.
    if (ids.isRunningShort) ids.moveTo(this.#clock.notBefore(ids.position.at + 1));
    // What these end users have been told the time is, no reader of this process is told an earlier one.
    this.#clock.notBefore(ids.position.at);
    // Who has no row is not locked, and counts as never heard of, even if somebody else has added one meanwhile.
    const loaded = batch.users.map((user) => (latest.has(nameOf(user)) ? (cycles.get(nameOf(user)) ?? []) : []));
    const moment = { now: ids.position.at, nextId: () => ids.next() };
    const { outcomes, changes } = fold(batch, loaded, moment, PERIODS_PER_BATCH_MAX);
    await this.#write(changes);
    return { outcomes, isEmpty: changes.length === 0, witness: witnessOf(changes) };
  }

  async #lockAndLoad(users: readonly EndUserKey[]) {
    const keys = columnsOf(users.map(keyOf), 3);
    const floor = this.#clock.latest;
    const [, locked, clock, held] = await pipelined([
      this.#client.query(BEGIN),
      this.#query(this.#statements.lock, keys),
      // Asked for behind the locks: whoever held them before has an earlier instant.
      this.#client.query(`SELECT ${this.#clock.now} AS now`),
      this.#query(this.#statements.cycles, [...keys, floor]),
    ]);
    const latest = new Map<string, TransactionId | null>();
    for (const row of locked.rows) latest.set(nameOf({ account: row.account, endUser: row.end_user }), row.latest);
    return { now: this.#clock.notBefore(clock.rows[0].now), latest, cycles: cyclesByUser(held.rows) };
  }

  async #write(changes: readonly UserChange[]): Promise<void> {
    if (changes.length === 0) return;
    const { updateCycles, insertCycles, insertPostings, setLatest } = this.#statements;
    const changed = changes.flatMap(({ user, changed }) =>
      changed.map(({ after }) => [...keyOf(user), after.end, after.id, after.remaining, after.status]),
    );
    const opened = changes.flatMap(({ user, opened }) =>
      opened.map((cycle) => [...keyOf(user), ...cycleColumns(cycle)]),
    );
    const postings = changes.flatMap(({ user, postings }) =>
      postings.map((p) => [
        ...keyOf(user),
        ...[p.transactionId, p.cycleId, p.period, p.kind, p.amount, p.createdAt, p.expiresAt, p.actor],
      ]),
    );
    const latest = changes.map(({ user, postings }) => [...keyOf(user), postings.at(-1)?.transactionId]);
    // Changes before openings: a renewed period makes room in the index of active cycles for the next one.
    await pipelined([
      this.#write1(updateCycles, changed, 7),
      this.#write1(insertCycles, opened, 12),
      this.#write1(insertPostings, postings, 11),
      this.#write1(setLatest, latest, 4),
      this.#client.query(BEFORE_COMMIT),
    ]);
  }

  async #write1(statement: Statement, rows: readonly (readonly unknown[])[], columns: number): Promise<void> {
    if (rows.length === 0) return;
    const { rowCount } = await this.#query(statement, columnsOf(rows, columns));
    assert(rowCount === rows.length, `${statement.name} concerns one row for each key`);
  }

  #query(statement: Statement, values: unknown[]): Promise<QueryResult> {
    return this.#client.query(query(statement, values, this.#isPrepared));
  }
}

/** Not a renewal: those have the same id in every process, so another one may have entered it. */
function witnessOf(changes: readonly UserChange[]): Witness | null {
  for (const { user, postings } of changes) {
    const own = postings.findLast(({ kind }) => kind !== 'renew');
    if (own) return { user, transactionId: own.transactionId };
  }
  return null;
}

/** Ids that come after every one of these, in the order of the store: after all that their end users have. */
function idsAfter(now: Instant, latest: Iterable<TransactionId | null>): TransactionIds {
  let position = { at: now, sequence: 0 };
  for (const id of latest) {
    if (id === null) continue;
    const [at, sequence] = [instantOf(id), sequenceOf(id)];
    if (at > position.at || (at === position.at && sequence > position.sequence)) position = { at, sequence };
  }
  return new TransactionIds(position);
}

function cyclesByUser(rows: readonly CycleRow[]): Map<string, Cycle[]> {
  const byUser = new Map<string, Cycle[]>();
  for (const row of rows) {
    const cycle = cycleOf(row);
    assertCycle(cycle);
    const name = nameOf({ account: row.account, endUser: row.end_user });
    const cycles = byUser.get(name);
    if (cycles) cycles.push(cycle);
    else byUser.set(name, [cycle]);
  }
  for (const cycles of byUser.values()) cycles.sort(burnOrder);
  return byUser;
}

function cycleColumns({ id, period, type, status, amount, remaining, start, end, validityDays }: Cycle): unknown[] {
  return [id, period, type, status, amount, remaining, start, end, validityDays];
}

/** What can make something out of nothing. The other commands of an end user never heard of are refused without a row. */
function opens({ kind }: Command): boolean {
  return kind === 'add' || kind === 'start-cycle';
}

function isSame(a: EndUserKey, b: EndUserKey): boolean {
  return a.account === b.account && a.endUser === b.endUser;
}

export function keyOf(user: EndUserKey): Key {
  return [bucketOf(user), user.account, user.endUser];
}

function nameOf({ account, endUser }: EndUserKey): string {
  return `${account}/${endUser}`;
}
