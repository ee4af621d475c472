// Decides which webhook endpoints this process delivers to. Several processes can serve one PostgreSQL ledger, and each
// endpoint is leased to one of them. A lease expires after a few seconds unless the process renews it, so the endpoints
// of a killed process become free. The database's clock determines when a lease expires. The loss of a lease is harmless,
// so no statement waits for the disk or for a standby.

import { type Selectable, type SqlBool, sql } from 'kysely';
import type { AccountDatabase, AccountTables } from '../../store/account-database.ts';

export interface LeaseTerms {
  readonly leaseMs: number;
  readonly renewMs: number;
  /** A sender stops this long after its lease was last renewed, measured by this process's clock. */
  readonly safeMs: number;
}

/** The lease durations for a ledger that several processes can serve. */
export const SHARED_LEASES: LeaseTerms = { leaseMs: 10_000, renewMs: 3_000, safeMs: 8_000 };

/** The state of an endpoint when a run of webhook-job.ts begins. */
export interface SeenEndpoint {
  readonly id: number;
  readonly revision: number;
  readonly isPaused: boolean;
  /** See the column of the same name. */
  readonly changes: number;
  readonly isOurs: boolean;
  /** True if no process has a valid lease. */
  readonly isFree: boolean;
}

/**
 * Each second, a process leases only this share of the free endpoints, but at least one endpoint. Processes that start
 * at the same time therefore each get some endpoints.
 */
const SHARE = 0.25;

export class Leases {
  readonly #database: AccountDatabase;
  readonly #process: string;
  readonly #terms: LeaseTerms | null;

  /** @param terms null if only this process serves the ledger: it then leases all endpoints, without a time limit */
  constructor(database: AccountDatabase, process: string, terms: LeaseTerms | null) {
    this.#database = database;
    this.#process = process;
    this.#terms = terms;
  }

  async look(): Promise<SeenEndpoint[]> {
    const rows = await this.#database.queries
      .selectFrom('webhook_endpoints')
      .select(['endpoint_id', 'revision', 'paused_at', 'changes', 'leased_by'])
      .select(sql<number>`CASE WHEN ${this.#isExpired} THEN 1 ELSE 0 END`.as('expired'))
      .orderBy('endpoint_id')
      .execute();
    return rows.map((row) => ({
      id: row.endpoint_id,
      revision: row.revision,
      isPaused: row.paused_at !== null,
      changes: row.changes,
      isOurs: row.leased_by === this.#process,
      isFree: row.leased_by === null || this.#terms === null || row.expired === 1,
    }));
  }

  /**
   * Leases endpoints to this process.
   *
   * @param ours endpoints that are already leased to this process
   * @param free endpoints without a valid lease, of which the process leases a share
   * @returns the IDs of the endpoints that are now leased to this process
   */
  async claim(ours: readonly number[], free: readonly number[]): Promise<number[]> {
    const count = this.#terms === null ? free.length : Math.max(1, Math.floor(free.length * SHARE));
    const ids = [...ours, ...free.slice(0, count)];
    if (ids.length === 0) return [];
    const rows = await this.#database.relaxed((queries) =>
      queries
        .updateTable('webhook_endpoints')
        .set({ leased_by: this.#process, leased_until: this.#end })
        .where('endpoint_id', 'in', ids)
        .where('paused_at', 'is', null)
        .$if(this.#terms !== null, (query) =>
          query.where(({ or, eb }) =>
            or([eb('leased_by', 'is', null), eb('leased_by', '=', this.#process), this.#isExpired]),
          ),
        )
        .returning('endpoint_id')
        .execute(),
    );
    return rows.map((row) => row.endpoint_id);
  }

  /** @returns the IDs of the endpoints whose lease was renewed; the others are no longer leased to this process */
  async renew(ids: readonly number[]): Promise<number[]> {
    if (ids.length === 0) return [];
    const rows = await this.#database.relaxed((queries) =>
      queries
        .updateTable('webhook_endpoints')
        .set({ leased_until: this.#end })
        .where('endpoint_id', 'in', ids)
        .where('leased_by', '=', this.#process)
        .returning('endpoint_id')
        .execute(),
    );
    return rows.map((row) => row.endpoint_id);
  }

  async release(id: number): Promise<void> {
    await this.#database.relaxed((queries) =>
      queries
        .updateTable('webhook_endpoints')
        .set({ leased_by: null })
        .where('endpoint_id', '=', id)
        .where('leased_by', '=', this.#process)
        .execute(),
    );
  }

  /** @returns null if the endpoint is no longer leased to this process */
  async read(id: number): Promise<Selectable<AccountTables['webhook_endpoints']> | null> {
    const row = await this.#database.queries
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('endpoint_id', '=', id)
      .where('leased_by', '=', this.#process)
      .executeTakeFirst();
    return row ?? null;
  }

  get #end() {
    return sql<number>`${sql.raw(this.#database.clock)} + ${sql.lit(this.#terms?.leaseMs ?? 0)}`;
  }

  /** After a failover to a server whose clock is behind, a lease could otherwise last too long. */
  get #isExpired() {
    const clock = sql.raw(this.#database.clock);
    const longest = sql.lit(2 * (this.#terms?.leaseMs ?? 0));
    return sql<SqlBool>`(leased_until < ${clock} OR leased_until > ${clock} + ${longest})`;
  }
}
