// Serves a ledger from PostgreSQL. Writes go to the batch writer; reads use separate connections. A read loads the
// cycles of one end user, alone or with a page of its history in the same snapshot. A due renewal that is not stored
// yet is shown only if no write can be committed before it any more.
//
//   read ──▶ nothing is due ──▶ shown
//     └── a renewal is due ──▶ read again, after the current batch of this end user and before the next one ──▶ shown

import { randomInt } from 'node:crypto';
import type { Command, EndUserKey, Outcome } from '../../../ledger/command.ts';
import { assertReadable, inBurnOrder } from '../../../ledger/cycle.ts';
import { isSettled } from '../../../ledger/next-event.ts';
import type { PostingKind, Transaction } from '../../../ledger/posting.ts';
import { liveState } from '../../../ledger/state.ts';
import { instantOf } from '../../../ledger/transaction-id.ts';
import type { LedgerFeed } from '../../feed.ts';
import type {
  IdempotencyRetention,
  Lanes,
  LedgerStore,
  LoadedEndUser,
  PageRequest,
  TransactionPage,
} from '../../ledger-store.ts';
import type { StoreFault } from '../../store-fault.ts';
import type { Part } from '../citus/placement.ts';
import { deleteOldest } from '../idempotency/record-table.ts';
import { consume } from '../journal/feed.ts';
import { exactInteger, prepared, type Query, type QueryResult, sql, type TextRow } from '../pool/connection.ts';
import { attempt, faultOf } from '../pool/postgres-error.ts';
import { BEGIN_SNAPSHOT, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { BUCKETS, keyOf, OF_END_USER } from '../rows/key.ts';
import { CYCLE_COLUMNS, cycleOf, RENEWS } from '../rows/ledger-rows.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import type { BatchWriter } from '../writer/batch-writer.ts';

/** No transaction id sorts after this one. */
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const CYCLES = `SELECT ids_through, ${CYCLE_COLUMNS} FROM scrip.cycles WHERE ${OF_END_USER}`;

/** All cycles that are live at `$4` or later. `$4` is an instant in the past. */
const LIVE = prepared('live_cycles', `${CYCLES} AND ends_at > $4 UNION ALL ${CYCLES} AND ${RENEWS} AND ends_at <= $4`);

const RENEWING = prepared('renewing_cycle', `${CYCLES} AND ${RENEWS}`);

/** A batch locks the row of each of its end users before it reads the clock, and until it is durable. */
const LOCK = prepared('lock_shared', `SELECT 1 FROM scrip.end_users WHERE ${OF_END_USER} FOR SHARE`);

/**
 * A batch takes far less time unless it waits for a standby. A reader should not wait longer, since it occupies a
 * connection.
 */
const BEGIN_BEHIND = [sql('BEGIN ISOLATION LEVEL READ COMMITTED'), ...setLocal({ lock_timeout: '1s' })];

/** Stopping a cycle moves no credits: it has a posting, but is not listed as a transaction. */
const PAGE = prepared(
  'page',
  `SELECT transaction_id, min(kind), sum(amount), min(created_at), max(expires_at), min(actor)
   FROM scrip.postings
   WHERE ${OF_END_USER} AND transaction_id < $4 AND transaction_id BETWEEN $5 AND $6 AND kind <> 'stop-cycle'
   GROUP BY transaction_id ORDER BY transaction_id DESC LIMIT $7`,
);

/**
 * `due(limit)` chooses among the `SHARES * limit` oldest renewals, or among the `limit` oldest if `limit` is below
 * `BUCKETS`.
 */
const SHARES = 16;

interface PageRead extends LoadedEndUser {
  readonly rows: readonly TextRow[];
}

export class PostgresLedgerStore implements LedgerStore {
  readonly lanes: Lanes;
  readonly feed: LedgerFeed;
  readonly database: LedgerDatabase;
  readonly close: () => Promise<void>;
  readonly #writer: BatchWriter;
  #trouble: StoreFault | null = null;
  /** The invariant violation that a write or a read has found. It stops all further writes. */
  #broken: StoreFault | null = null;
  /** The index of the part whose records are deleted next. It begins at random, since other processes do the same. */
  #deletedPart: number;

  constructor(database: LedgerDatabase, writer: BatchWriter, close: () => Promise<void>) {
    const { pool, placement } = database;
    this.database = database;
    this.#writer = writer;
    this.close = close;
    this.lanes = writer.lanes;
    this.feed = { consume: (consumer) => this.attempt(() => consume(pool, placement, consumer)) };
    this.#deletedPart = randomInt(placement.parts.length);
  }

  async write(commands: readonly Command[], onDecided: () => void): Promise<readonly (Outcome | null)[]> {
    if (this.#broken) throw this.#broken;
    return await this.#writer.write(commands, onDecided).catch((error) => {
      const fault = faultOf(error);
      this.onTrouble(fault);
      throw fault;
    });
  }

  /** Loads an end user with all of its live cycles. */
  load(user: EndUserKey): Promise<LoadedEndUser> {
    return this.attempt(async () => {
      const { pool, clock } = this.database;
      const loading = [LIVE([...keyOf(user), clock.latest]), clock.query];
      const { now, state } = await this.#shown(user, loading, await pool.send(loading));
      return { now, state };
    });
  }

  transactions(user: EndUserKey, { from, limit, within }: PageRequest): Promise<TransactionPage> {
    return this.attempt(async () => {
      const page = PAGE([...keyOf(user), from ?? LAST_ID, within.first, within.last, limit + 1]);
      const { now, state, rows } = await this.page(user, page);
      const transactions = rows.slice(0, limit).map(transactionOf);
      return { now, state, transactions, next: rows.length > limit ? (transactions.at(-1)?.id ?? null) : null };
    });
  }

  /**
   * Several processes look for due renewals and mostly get different ones, without coordination, since each call begins
   * at a random bucket. The instant is computed in a subquery, since PostgreSQL does not search an index for a value
   * that may change while the query runs.
   */
  due(limit: number): Promise<readonly EndUserKey[]> {
    const due = `
      SELECT account, end_user FROM (
        SELECT account, end_user, ends_at FROM (
          SELECT bucket, account, end_user, ends_at FROM scrip.cycles
          WHERE ${RENEWS} AND ends_at <= (SELECT greatest(${this.database.clock.sql}, $1))
          ORDER BY ends_at LIMIT $2
        ) AS oldest ORDER BY (bucket + $3) % ${BUCKETS}, ends_at LIMIT $4
      ) AS share ORDER BY ends_at`;
    return this.attempt(async () => {
      const among = limit < BUCKETS ? limit : SHARES * limit;
      const rows = await this.database.pool.rows(
        sql(due, [this.database.clock.latest, among, randomInt(BUCKETS), limit]),
      );
      return rows.map(([account, endUser]) => ({ account: Number(account), endUser: endUser as string }));
    });
  }

  /** Each step deletes records of one part, until none are left there. */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean> {
    return this.attempt(async () => {
      const { parts } = this.database.placement;
      const part = parts[this.#deletedPart] as Part;
      const isMore = await deleteOldest(this.database.pool, part, retention, this.database.clock.latest);
      if (!isMore) this.#deletedPart = (this.#deletedPart + 1) % parts.length;
      return isMore;
    });
  }

  trouble(): string | null {
    return (this.#broken ?? this.#trouble)?.message ?? null;
  }

  onTrouble(trouble: StoreFault | null): void {
    if (trouble?.code === 'Internal') this.#broken = trouble;
    else this.#trouble = trouble;
  }

  /** Runs a read. If it fails, writes may still work, unless the read has found an invariant violation. */
  async attempt<Result>(read: () => Promise<Result>): Promise<Result> {
    return await attempt(read).catch((fault) => {
      if (fault.code === 'Internal') this.onTrouble(fault);
      throw fault;
    });
  }

  /**
   * Reads a page of rows of an end user and, in the same snapshot, the cycle that is renewed now or later: otherwise a
   * renewal that is stored in between would be shown twice. Other cycles are not loaded.
   *
   * @param page a query for rows that begin with a transaction id, the latest first
   */
  async page(user: EndUserKey, page: Query): Promise<PageRead> {
    const reading = [RENEWING(keyOf(user)), this.database.clock.query, page];
    const [, ...results] = await this.database.pool.send([BEGIN_SNAPSHOT, ...reading, COMMIT]);
    return this.#shown(user, reading, results);
  }

  /** @param results the results of `reading`, which is sent again if a renewal is due */
  async #shown(user: EndUserKey, reading: readonly Query[], results: readonly QueryResult[]): Promise<PageRead> {
    const read = this.#readOf(results);
    if (isSettled(read.state, read.now)) return read;
    // Take the lock first. Nothing is written, so ROLLBACK does not wait for a standby.
    const locking = [...BEGIN_BEHIND, LOCK(keyOf(user))];
    const again = await this.database.pool.send([...locking, ...reading, ROLLBACK]);
    return this.#readOf(again.slice(locking.length));
  }

  /** The returned instant is never before anything that was read, even if the database's clock was set back since. */
  #readOf([cycles, clocked, page]: readonly QueryResult[]): PageRead {
    const rows = page?.rows ?? [];
    const latestId = rows[0]?.[0];
    let latest = latestId ? instantOf(latestId) : 0;
    const held = (cycles as QueryResult).rows.map(([idsThrough, ...columns]) => {
      latest = Math.max(latest, instantOf(idsThrough as string));
      const cycle = cycleOf(columns);
      assertReadable(cycle);
      return cycle;
    });
    const now = this.database.clock.notBefore(
      Math.max(latest, this.database.clock.read((clocked as QueryResult).rows)),
    );
    // The query used the latest instant known to this process, so some of the cycles may have ended.
    return { now, rows, state: liveState({ cycles: inBurnOrder(held) }, now) };
  }
}

function transactionOf([id, kind, amount, createdAt, expiresAt, actor]: TextRow): Transaction {
  return {
    id: id as string,
    kind: kind as PostingKind,
    amount: exactInteger(amount),
    createdAt: exactInteger(createdAt),
    expiresAt: exactInteger(expiresAt),
    actor: actor as string,
  };
}
