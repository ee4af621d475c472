// Serves a ledger from PostgreSQL. A read also shows due events that are not stored yet, such as renewals. Before a
// read shows such an event, it makes sure that no write with an earlier instant can still be committed.
//
//   read ──▶ nothing is due ──▶ shown
//     └── something is due ──▶ read again, after the current batch of this end user and before the next one ──▶ shown

import { randomInt } from 'node:crypto';
import { type Command, type EndUserKey, endUserText, type Outcome } from '../../../ledger/command.ts';
import { assertReadable } from '../../../ledger/cycle.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { isSettled } from '../../../ledger/next-event.ts';
import { liveState } from '../../../ledger/state.ts';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import { assertLimit } from '../../console-store.ts';
import { isUuid } from '../../end-user-lists.ts';
import type {
  IdempotencyRetention,
  Lanes,
  LedgerStore,
  PageRequest,
  StatesAt,
  TransactionPage,
} from '../../ledger-store.ts';
import type { LoadedEndUser } from '../../loaded-end-user.ts';
import { InvalidCursor, type StoreFault } from '../../store-fault.ts';
import type { HistoryPage, HistoryRequest } from '../../transaction-history.ts';
import { EVERYTHING, fromRandomStart, type Part } from '../citus/placement.ts';
import type { Reachable } from '../citus/reach.ts';
import { deleteOldest } from '../idempotency/record-table.ts';
import { countSome } from '../journal/feed.ts';
import { statesBefore } from '../journal/past-states.ts';
import { HOLD_AS_CYCLE, StateRows } from '../journal/state-rows.ts';
import { prepared, type Query, type QueryResult, sql, type TextRow } from '../pool/connection.ts';
import { attempt, faultOf } from '../pool/postgres-error.ts';
import { BEGIN, BEGIN_SNAPSHOT, COMMIT, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { BUCKETS, keyOf, OF_END_USER } from '../rows/key.ts';
import { CYCLE_COLUMNS, POSTING_COLUMNS, postingOf, RENEWS, referencedOf } from '../rows/ledger-rows.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import type { BatchWriter } from '../writer/batch-writer.ts';
import { historyOf, historyQuery } from './history-pages.ts';
import { transactionsOf, transactionsQuery } from './transaction-page.ts';

const CYCLES = `SELECT ids_through, ${CYCLE_COLUMNS} FROM scrip.cycles WHERE ${OF_END_USER}`;

/**
 * Selects all cycles that end after `$4`, the active recurring cycle (even if it has ended), and all holds. `$4` is an
 * instant in the past.
 */
const LIVE = prepared(
  'live_state',
  `${CYCLES} AND ends_at > $4 UNION ALL ${CYCLES} AND ${RENEWS} AND ends_at <= $4
   UNION ALL SELECT NULL::uuid, ${HOLD_AS_CYCLE} FROM scrip.holds WHERE ${OF_END_USER}`,
);

const RENEWING = prepared('renewing_cycle', `${CYCLES} AND ${RENEWS}`);

/**
 * Waits for a running batch of the end user: each batch locks the rows of its end users before it reads the clock, and
 * keeps the locks until the batch is durable.
 */
const LOCK = prepared('lock_shared', `SELECT 1 FROM scrip.end_users WHERE ${OF_END_USER} FOR SHARE`);

/**
 * A batch takes far less time than this timeout, unless the batch waits for a standby. A reader should not wait for a
 * standby, because a waiting reader occupies a connection.
 */
const BEGIN_BEHIND = [BEGIN, ...setLocal({ lock_timeout: '1s' })];

const POSTINGS = `SELECT ${POSTING_COLUMNS}, line FROM scrip.postings WHERE ${OF_END_USER}`;

const REFERENCED = prepared(
  'referenced_by_id',
  `${POSTINGS} AND transaction_id = $4 UNION ALL ${POSTINGS} AND kind = 'refund' AND reference = $4
   ORDER BY transaction_id, line`,
);

/**
 * `#anyDue` considers the `SHARES * limit` renewals and the `SHARES * limit` lapses that have been due the longest, and
 * returns at most `limit` rows in total. If `limit` is below `BUCKETS`, `#anyDue` considers only `limit` renewals and
 * `limit` lapses.
 */
const SHARES = 16;

/**
 * Finds due renewals and due lapses in some buckets. The results begin at a random bucket, so several processes mostly
 * find different end users without coordination. The current instant is a parameter, because PostgreSQL cannot use an
 * index to compare a column with a volatile function.
 */
const dueSql = (buckets: readonly number[], reachable: Reachable) => `
  SELECT account, end_user, at FROM (
    (SELECT bucket, account, end_user, ends_at AS at FROM scrip.cycles
     WHERE ${RENEWS} AND ends_at <= $1${reachable('cycles', buckets)} ORDER BY ends_at LIMIT $2)
    UNION ALL (SELECT bucket, account, end_user, expires_at FROM scrip.holds
     WHERE expires_at <= $1${reachable('holds', buckets)} ORDER BY expires_at LIMIT $2)
  ) AS oldest ORDER BY (bucket + $3) % ${BUCKETS}, at LIMIT $4`;

interface PageRead extends LoadedEndUser {
  readonly rows: readonly TextRow[];
}

export class PostgresLedgerStore implements LedgerStore {
  readonly lanes: Lanes;
  readonly quietPauseMs: number;
  readonly database: LedgerDatabase;
  readonly close: () => Promise<void>;
  readonly #writer: BatchWriter;
  #trouble: StoreFault | null = null;
  /**
   * The invariant violation that a read or a write has found, which stops all further writes; null if there is none.
   */
  #broken: StoreFault | null = null;
  /** Becomes true when `#anyDue` finds `limit` rows, and false when `#manyDue` finds fewer than half of `limit`. */
  #hasManyDue = false;
  /**
   * The index of the part whose expired idempotency records are deleted next. The first part is random, so that
   * processes usually begin with different parts.
   */
  #deletedPart: number;

  constructor(database: LedgerDatabase, writer: BatchWriter, close: () => Promise<void>) {
    const { placement } = database;
    this.database = database;
    this.#writer = writer;
    this.close = close;
    this.lanes = writer.lanes;
    this.quietPauseMs = placement.quietPauseMs;
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

  /** Loads an end user with all of its live cycles and all of its holds. */
  load(user: EndUserKey): Promise<LoadedEndUser> {
    return this.#readFor(user, async () => {
      const loading = this.#loading(user);
      const { now, state } = await this.#shown(user, await this.database.pool.send(loading));
      return { now, state };
    });
  }

  transactions(user: EndUserKey, request: PageRequest): Promise<TransactionPage> {
    return this.#readFor(user, async () => {
      const { now, state, rows } = await this.#page(user, this.#renewing(user), transactionsQuery(user, request));
      return { now, state, ...(await transactionsOf(this.database.pool, user, request, rows)) };
    });
  }

  async history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage> {
    assertLimit(request.limit);
    if (request.from !== null && !isUuid(request.from)) throw new InvalidCursor();
    return this.#readFor(user, async () => {
      // The caller adds due events to the first page, and therefore needs all live cycles and all holds.
      const loading = request.from === null ? this.#loading(user) : this.#renewing(user);
      const { now, state, rows } = await this.#page(user, loading, historyQuery(user, request));
      return { now, state, ...(await historyOf(this.database.pool, user, request, rows)) };
    });
  }

  /**
   * Waits for a running batch of the end user, because the batch can write postings that are earlier than some of
   * `instants`.
   */
  statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt> {
    return this.#readFor(user, async () => {
      const { pool } = this.database;
      const { now, state } = await this.#readBehindBatch(user, this.#loading(user));
      const past = instants.filter((at) => at < now);
      const later = instants.slice(past.length).map(() => state);
      return { now, states: [...(await statesBefore(pool, user, past)), ...later] };
    });
  }

  async find(user: EndUserKey, id: TransactionId): Promise<Referenced | null> {
    // The ID comes from a client, and PostgreSQL refuses a query with an ID that is not a UUID.
    if (!isUuid(id)) return null;
    return this.#readFor(user, async () => {
      const rows = await this.database.pool.rows(REFERENCED([...keyOf(user), id]));
      return referencedOf(
        rows.map((row) => postingOf(row)),
        id,
      );
    });
  }

  due(limit: number): Promise<readonly EndUserKey[]> {
    return this.attempt(async () => {
      const { pool, clock } = this.database;
      const now = Math.max(await clock.peek(pool), clock.latest);
      const rows = await (this.#hasManyDue ? this.#manyDue(now, limit) : this.#anyDue(now, limit));
      const oldestFirst = rows.toSorted(([, , a], [, , b]) => Number(a) - Number(b));
      const users = oldestFirst.map(([account, endUser]) => ({ account: Number(account), endUser: endUser as string }));
      // Remove duplicates, because an end user can have a due renewal and several due lapses.
      return [...new Map(users.map((user) => [endUserText(user), user])).values()];
    });
  }

  async #anyDue(now: Instant, limit: number): Promise<readonly TextRow[]> {
    const rows = await this.#dueIn(EVERYTHING.buckets, now, limit, limit < BUCKETS ? limit : SHARES * limit);
    this.#hasManyDue = rows.length === limit;
    return rows;
  }

  /**
   * Searches one bucket at a time (on Citus, one shard at a time), beginning with a random one, until it has found at
   * least `limit / 2` rows. With 300,000 due end users, PostgreSQL on two cores took 3 to 7 ms to find 1,024 of them in
   * one bucket, and 50 to 150 ms to find as many in all buckets.
   */
  async #manyDue(now: Instant, limit: number): Promise<readonly TextRow[]> {
    const { parts } = this.database.placement;
    const groups = parts.flatMap(({ isShard, buckets }) => (isShard ? [buckets] : buckets.map((bucket) => [bucket])));
    const found: TextRow[] = [];
    for (const group of fromRandomStart(groups)) {
      found.push(...(await this.#dueIn(group, now, limit - found.length)));
      if (found.length >= limit / 2) return found;
    }
    this.#hasManyDue = false;
    return found;
  }

  /** @param among how many renewals and how many lapses to consider at most, beginning with the earliest due */
  #dueIn(buckets: readonly number[], now: Instant, limit: number, among = limit): Promise<readonly TextRow[]> {
    const { pool, reach } = this.database;
    const values = [now, among, randomInt(BUCKETS), limit];
    return reach.lookUp((reachable) => pool.rows(sql(dueSql(buckets, reachable), values)));
  }

  updateTotals(): Promise<boolean | null> {
    return this.attempt(() => countSome(this.database));
  }

  /**
   * Each call deletes expired records of one part. If the part has none left or cannot be reached, the next call
   * continues with the next part.
   */
  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean> {
    return this.attempt(async () => {
      const { pool, clock, placement, reach } = this.database;
      const { parts } = placement;
      const part = parts[this.#deletedPart] as Part;
      const now = clock.isTest ? await clock.peekMachine(pool) : clock.latest;
      const isMore = !reach.unavailable().includes(part) && (await deleteOldest(pool, part, retention, now));
      if (!isMore) this.#deletedPart = (this.#deletedPart + 1) % parts.length;
      return isMore;
    });
  }

  trouble(): string | null {
    return (this.#broken ?? this.#trouble)?.message ?? null;
  }

  unreachable(): readonly string[] {
    return this.database.reach.unavailable().map(({ name }) => name);
  }

  onTrouble(trouble: StoreFault | null): void {
    if (trouble?.isPartial) return;
    if (trouble?.code === 'Internal') this.#broken = trouble;
    else this.#trouble = trouble;
  }

  /** A failed read does not stop writes, unless it has found an invariant violation. */
  async attempt<Result>(read: () => Promise<Result>): Promise<Result> {
    return await attempt(read).catch((fault) => {
      if (fault.code === 'Internal') this.onTrouble(fault);
      throw fault;
    });
  }

  /** Fails immediately if the rows of the end user cannot be reached. */
  #readFor<Result>(user: EndUserKey, read: () => Promise<Result>): Promise<Result> {
    const { placement, reach } = this.database;
    return this.attempt(() => reach.read(placement.partOf(user), read));
  }

  /**
   * Reads a page of rows and the end user's state in one snapshot: with two snapshots, a renewal that is stored between
   * the two reads would be shown twice. If an event is due, loads all live cycles and all holds. A renewal depends on
   * the holds, because held credits do not roll over.
   *
   * @param page a query whose rows begin with a transaction ID, sorted from the latest to the earliest transaction
   */
  async #page(user: EndUserKey, loading: readonly Query[], page: Query): Promise<PageRead> {
    const [, ...results] = await this.database.pool.send([BEGIN_SNAPSHOT, ...loading, page, COMMIT]);
    return this.#shown(user, results, [page]);
  }

  /** The statements that load the active recurring cycle of an end user, and the time. */
  #renewing(user: EndUserKey): readonly Query[] {
    return [RENEWING(keyOf(user)), this.database.clock.query];
  }

  /** The statements that load an end user, and the time. */
  #loading(user: EndUserKey): readonly Query[] {
    const { clock } = this.database;
    return [LIVE([...keyOf(user), clock.latest]), clock.query];
  }

  /**
   * @param page the query for a page of rows, if any; if an event is due, this query is sent again, after `#loading`
   */
  async #shown(user: EndUserKey, results: readonly QueryResult[], page: readonly Query[] = []): Promise<PageRead> {
    const read = this.#readOf(results);
    if (isSettled(read.state, read.now)) return read;
    return this.#readBehindBatch(user, [...this.#loading(user), ...page]);
  }

  async #readBehindBatch(user: EndUserKey, reading: readonly Query[]): Promise<PageRead> {
    // Nothing is written, so end with ROLLBACK, which does not wait for a standby.
    const locking = [...BEGIN_BEHIND, LOCK(keyOf(user))];
    const again = await this.database.pool.send([...locking, ...reading, ROLLBACK]);
    return this.#readOf(again.slice(locking.length));
  }

  /** The returned `now` is never earlier than any change that was read, even if the database's clock was set back. */
  #readOf([found, clocked, page]: readonly QueryResult[]): PageRead {
    const rows = page?.rows ?? [];
    const latestId = rows[0]?.[0];
    let latest = latestId ? instantOf(latestId) : 0;
    const stored = new StateRows();
    for (const [idsThrough = null, ...columns] of (found as QueryResult).rows) {
      if (idsThrough !== null) latest = Math.max(latest, instantOf(idsThrough));
      stored.add(columns, assertReadable);
    }
    const now = this.database.clock.notBefore(
      Math.max(latest, this.database.clock.read((clocked as QueryResult).rows)),
    );
    // The query used an instant before `now`, so some of the loaded cycles can have ended.
    return { now, rows, state: liveState(stored.state(), now) };
  }
}
