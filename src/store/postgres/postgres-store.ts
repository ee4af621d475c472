// The store for several processes and machines: PostgreSQL. Writes go through a few lanes, a connection each; reads
// through connections of their own, always to the primary.

import { randomInt } from 'node:crypto';
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import type { Finding } from '../../ledger/audit.ts';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { IdRange, TransactionId } from '../../ledger/transaction-id.ts';
import type { LedgerProof } from '../ledger-digest.ts';
import type { Loaded } from '../loaded.ts';
import {
  type AuditReport,
  CannotOpen,
  type Lanes,
  type PageRequest,
  type Store,
  StoreFault,
  type TransactionPage,
} from '../store.ts';
import { PostgresAccountReads } from './account-reads.ts';
import { PostgresApiKeys } from './api-keys.ts';
import { BatchWriter, STANDBY_AWAY } from './batch-writer.ts';
import { BUCKETS, bucketOf } from './bucket.ts';
import { BEGIN_UNPROMISED, openPool, type PostgresOptions, refuseUnsafe } from './connection.ts';
import { DatabaseClock } from './database-clock.ts';
import { EndUserReads } from './end-user-reads.ts';
import { keyOf } from './key.ts';
import { isCitus, migrate, refuseUnfinishedCopy, schemaState } from './migrate.ts';
import { MovementSummary } from './movement-summary.ts';
import { addUpAgain } from './movements.ts';
import { faultOf, readFaultOf } from './postgres-error.ts';
import { addChainsTo, proveDatabase } from './proving.ts';
import { type CycleRow, type PostingRow, transactionOf } from './rows.ts';
import { StandbyWatch } from './standby-watch.ts';
import { auditDatabase } from './whole-store.ts';

const READERS = 8;

/** One as a rule; another when a batch has failed that the next one had followed, and both are tried again. */
const CONNECTIONS_PER_LANE = 2;

/** How often the server is asked whether it is there, and told the latest instant. */
const TICK_MS = 1_000;
/** A server that does not do this in time is not there. */
const KEEP_TIME_MS = 2_000;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const ALL_IDS: IdRange = { first: FIRST_ID, last: LAST_ID };

const PAGE = `
  SELECT transaction_id, min(kind) AS kind, sum(amount)::bigint AS amount, min(created_at) AS created_at,
    max(expires_at) AS expires_at, min(actor) AS actor
  FROM scrip.postings
  WHERE bucket = $1 AND account = $2 AND end_user = $3 AND transaction_id < $4
    AND transaction_id BETWEEN $5 AND $6 AND kind <> 'stop-cycle'
  GROUP BY transaction_id ORDER BY transaction_id DESC LIMIT $7`;

/** Forgotten in one step. */
const FORGOTTEN_MAX = 1_000;

const FORGET_ANSWERS = `
  DELETE FROM scrip.answers WHERE bucket = $1 AND (account, end_user, key) IN (
    SELECT account, end_user, key FROM scrip.answers WHERE bucket = $1 AND answered_at < $2 ORDER BY answered_at LIMIT $3
  )`;

/** Of so many times more than are asked for, each call takes a share of its own; fewer than there are buckets are not shared. */
const SHARES = 16;

/**
 * Of the end users that are longest overdue, those in some buckets, the first of which differs from call to call: so
 * processes that ask at the same time mostly get others, without knowing of each other. The instant is computed in a
 * query of its own, since the index is not searched for one that changes while the query runs.
 *
 * @param now SQL for the time
 */
const due = (now: string) => `
  SELECT account, end_user FROM (
    SELECT account, end_user, ends_at FROM (
      SELECT bucket, account, end_user, ends_at FROM scrip.cycles
      WHERE type = 'recurring' AND status = 'active' AND ends_at <= (SELECT greatest(${now}, $1))
      ORDER BY ends_at LIMIT $2
    ) AS oldest ORDER BY (bucket + $3) % ${BUCKETS}, ends_at LIMIT $4
  ) AS share ORDER BY ends_at`;

/**
 * Without waiting for a standby, which no promise hangs on: while there is none, each of these would wait in the server
 * with the row locked and a connection of its own, until no connection was left.
 */
const keepTime = (latest: Instant) => `
  ${BEGIN_UNPROMISED};
  UPDATE scrip.clock SET at = greatest(at, ${latest}) RETURNING at; COMMIT`;

/**
 * Opens the ledger in a database, making or migrating it when need be.
 *
 * @throws CannotOpen when the server cannot be reached, is not to be trusted, or holds a newer schema
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const readers = openPool(options.url, READERS);
  try {
    await refuseUnsafe(readers, options.acceptUnsafe);
    if ((await schemaState(readers)) === null) await (await openPostgresStoreBeside(options, { create: true })).close();
    await refuseUnfinishedCopy(readers);
    const onCitus = await isCitus(readers, options.citus);
    const store = new PostgresStore(readers, options, onCitus);
    await store.start();
    return store;
  } catch (error) {
    await readers.end();
    throw explained(error);
  }
}

/** Opens the ledger beside servers that may be running on it: for API keys and the audit. */
export async function openPostgresStoreBeside(
  options: PostgresOptions,
  { create }: { create: boolean },
): Promise<Store> {
  // The audit and a migration take as long as they take.
  const readers = openPool(options.url, READERS, { queryTimeoutMs: 0 });
  try {
    if ((await schemaState(readers)) === null) {
      if (!create)
        throw new CannotOpen(
          'There is no ledger of this version in the database; check DATABASE_URL, or run `scrip migrate`.',
        );
      await migrate(readers, options.citus);
    }
    return new PostgresStore(readers, options, await isCitus(readers, options.citus));
  } catch (error) {
    await readers.end();
    throw explained(error);
  }
}

class PostgresStore implements Store {
  readonly lanes: Lanes;
  readonly apiKeys: PostgresApiKeys;
  readonly accountReads: PostgresAccountReads;
  readonly #readers: Pool;
  readonly #writers: Pool;
  readonly #writer: BatchWriter;
  readonly #clock: DatabaseClock;
  readonly #standby = new StandbyWatch(() => void this.keepTime());
  readonly #endUsers: EndUserReads;
  readonly #isCitus: boolean;
  readonly #movements: MovementSummary;
  readonly #ticking: NodeJS.Timeout;
  /** One at a time: while the server hangs, they would take all connections of the readers. */
  #keeping: Promise<void> | null = null;
  #trouble: StoreFault | null = null;
  #broken: StoreFault | null = null;

  constructor(readers: Pool, { url, lanes, prepared, chained = false, now }: PostgresOptions, onCitus: boolean) {
    this.#clock = new DatabaseClock(now);
    this.lanes = onCitus
      ? { count: BUCKETS, atOnce: lanes, of: bucketOf }
      : { count: lanes, atOnce: lanes, of: (user) => bucketOf(user) % lanes };
    this.#readers = readers;
    this.#writers = openPool(url, lanes * CONNECTIONS_PER_LANE);
    this.#writer = new BatchWriter(this.#writers, this.#clock, this.#standby, {
      isPrepared: prepared,
      isCitus: onCitus,
      isChained: chained,
    });
    this.apiKeys = new PostgresApiKeys(readers, this.#clock);
    this.#endUsers = new EndUserReads(readers, this.#clock, {
      unavailable: this.#unavailable,
      // Found by a reader, it stops the writes as well.
      broken: (error) => {
        throw this.#notice(faultOf(error));
      },
    });
    this.accountReads = new PostgresAccountReads(readers, this.#clock, {
      endUsers: this.#endUsers,
      unavailable: this.#unavailable,
      isCitus: onCitus,
    });
    this.#isCitus = onCitus;
    this.#movements = new MovementSummary(readers, onCitus);
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
  }

  async write(commands: readonly Command[], onDecided = () => {}): Promise<readonly (Outcome | null)[]> {
    if (this.#broken) throw this.#broken;
    const [first] = commands;
    if (first === undefined) return [];
    try {
      return await this.#writer.write(commands, this.lanes.of(first), onDecided);
    } catch (error) {
      throw this.#notice(faultOf(error));
    }
  }

  cycles(user: EndUserKey): Promise<Loaded> {
    return this.#endUsers.cycles(user);
  }

  async transactions(user: EndUserKey, { from, limit, within = ALL_IDS }: PageRequest): Promise<TransactionPage> {
    const values = [...keyOf(user), from ?? LAST_ID, within.first, within.last, limit + 1];
    const [loaded, rows] = await this.#endUsers.withPage<PostingRow>(user, { text: PAGE, values });
    const transactions = rows.slice(0, limit).map(transactionOf);
    const next = rows.length > limit ? (transactions.at(-1)?.id ?? null) : null;
    return { ...loaded, transactions, next };
  }

  async renewalsDue(limit: number): Promise<readonly EndUserKey[]> {
    const among = limit < BUCKETS ? limit : SHARES * limit;
    const { rows } = await this.#readers
      .query<CycleRow>(due(this.#clock.now), [this.#clock.latest, among, randomInt(BUCKETS), limit])
      .catch(this.#unavailable);
    return rows.map((row) => ({ account: row.account, endUser: row.end_user }));
  }

  /** Of one bucket, so that on Citus it concerns one shard; which one is left to chance, since others do the same. */
  async deleteExpiredRecords(ageMs: number): Promise<number> {
    const bucket = Math.floor(Math.random() * BUCKETS);
    const before = this.#clock.latest - ageMs;
    const { rowCount } = await this.#readers
      .query(FORGET_ANSWERS, [bucket, before, FORGOTTEN_MAX])
      .catch(this.#unavailable);
    return rowCount ?? 0;
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditDatabase(this.#readers, { clock: this.#clock, isCitus: this.#isCitus }, report);
  }

  async prove(through: readonly TransactionId[] | null, report: (finding: Finding) => void): Promise<LedgerProof> {
    return proveDatabase(this.#readers, this.#clock, through, report);
  }

  async addChains(): Promise<number> {
    return addChainsTo(this.#readers);
  }

  async addUpTotals(): Promise<void> {
    const client = await this.#readers.connect().catch(this.#unavailable);
    try {
      await addUpAgain(client, { clock: this.#clock, isCitus: this.#isCitus });
    } catch (error) {
      throw readFaultOf(error);
    } finally {
      client.release(true);
    }
  }

  trouble(): string | null {
    return (this.#broken ?? this.#trouble)?.message ?? null;
  }

  async close(): Promise<void> {
    clearInterval(this.#ticking);
    await this.#movements.stop();
    if (this.#clock.latest > 0) await this.keepTime();
    await Promise.all([this.#writers.end(), this.#readers.end()]);
  }

  /** Who starts looks at the clock: what it could have seen does not come back when the clock is then set back. */
  async start(): Promise<void> {
    this.#clock.notBefore(await this.#clock.ask(this.#readers));
    await this.keepTime();
  }

  /** Shares the latest instant with the other processes and those to come, and finds out whether the server is there. */
  keepTime(): Promise<void> {
    this.#keeping ??= this.#keepTime().finally(() => {
      this.#keeping = null;
    });
    return this.#keeping;
  }

  async #keepTime(): Promise<void> {
    try {
      const client = await this.#readers.connect().catch(this.#unavailable);
      let isSound = false;
      try {
        await this.#tellTime(client);
        isSound = true;
      } finally {
        client.release(!isSound);
      }
    } catch (error) {
      this.#notice(faultOf(error));
    }
  }

  async #tellTime(client: PoolClient): Promise<void> {
    const results = await client.query({
      text: keepTime(this.#clock.latest),
      query_timeout: KEEP_TIME_MS,
    } as QueryConfig);
    const [row] = (results as unknown as QueryResult[]).flatMap(({ rows }) => rows);
    this.#clock.notBefore(row.at);
    this.#trouble = (await this.#standby.isAway(client)) ? new StoreFault('StoreUnavailable', STANDBY_AWAY) : null;
  }

  #tick(): void {
    void this.keepTime();
    if (this.#trouble === null) this.#movements.tick();
  }

  /** A number that cannot be read exactly stops the writes as well. */
  readonly #unavailable = (error: unknown): never => {
    const fault = readFaultOf(error);
    throw fault.code === 'Internal' ? this.#notice(fault) : fault;
  };

  #notice(fault: StoreFault): StoreFault {
    if (fault.code === 'Internal') this.#broken = fault;
    else if (fault.code !== 'Overloaded') this.#trouble = fault;
    return fault;
  }
}

export function explained(error: unknown): unknown {
  if (error instanceof CannotOpen) return error;
  return new CannotOpen(
    `PostgreSQL cannot be used (${(error as Error).message}); check DATABASE_URL and that the server runs.`,
  );
}
