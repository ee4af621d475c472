// Tracks the shards whose worker cannot be reached. Batches for such a shard and reads of its end users fail
// immediately, and searches for background work leave it out. All other shards therefore work as usual. A single
// database is always considered reachable.
//
//   reachable ── a batch, a search or a probe cannot reach the worker ──▶ unreachable ── a probe succeeds ──▶ reachable

import { StoreFault } from '../../store-fault.ts';
import { sql } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { isConnectionLost, isWorkerAway, mayBeWorkerAway } from '../pool/postgres-error.ts';
import { BEGIN, ROLLBACK, setLocal } from '../pool/transactions.ts';
import { EVERYTHING, type Part, type Placement } from './placement.ts';

/**
 * Returns SQL to append to a condition, so that a statement on all shards leaves out the unreachable shards. If
 * `buckets` is present, the SQL limits the statement to these buckets. The statement must not contain a second list of
 * buckets: with two lists, Citus would send the statement to all shards.
 */
export type Reachable = (table: string, buckets?: readonly number[]) => string;

/** A worker that takes longer than this to answer a probe is considered unreachable. */
const PROBE_TIMEOUT_MS = 1_000;

const PROBE_PAUSE_MS = 1_000;

export class Reach {
  readonly #pool: Pick<ConnectionPool, 'send' | 'end'>;
  readonly #parts: readonly Part[];
  /** The unreachable parts, each with the reason. */
  readonly #unavailable = new Map<Part, string>();
  #probing: Promise<void> | null = null;
  #probedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param pool used only for probes: if a worker does not answer, all connections of the other pools can be in use
   */
  constructor(pool: Pick<ConnectionPool, 'send' | 'end'>, { parts }: Pick<Placement, 'parts'>) {
    this.#pool = pool;
    this.#parts = parts.filter(({ isShard }) => isShard);
  }

  unavailable(): readonly Part[] {
    return [...this.#unavailable.keys()];
  }

  /**
   * The fault with which every batch or read of an unreachable part fails; null if the part is reachable. If the part
   * is unreachable, this method also starts a probe. Searches for work start probes too, but an idle process rarely
   * searches for work.
   */
  faultOf(part: Part): StoreFault | null {
    const reason = this.#unavailable.get(part);
    if (reason === undefined) return null;
    this.#probeAgain().catch(() => {});
    return partAway(part, reason);
  }

  /**
   * Records that a batch could not reach the worker of a part. Probes the other parts in the background, because the
   * worker probably stores several parts.
   *
   * @returns the fault with which the batch fails
   */
  lost(part: Part, error: Error): StoreFault {
    this.#unavailable.set(part, error.message);
    void this.suspect();
    return partAway(part, error.message);
  }

  /** Finds out which shards are unreachable. */
  suspect(): Promise<void> {
    // Ignore a failure of the coordinator itself, because the heartbeat reports it.
    return this.#probe(() => this.#probeAll()).catch(() => {});
  }

  /**
   * Runs a read of an end user. Fails immediately if the part is unreachable: otherwise, a read from a worker that does
   * not answer would occupy a connection until the timeout, and reads from other shards need the connections.
   */
  async read<Result>(part: Part, read: () => Promise<Result>): Promise<Result> {
    const fault = this.faultOf(part);
    if (fault !== null) throw fault;
    return await read().catch((error) => {
      if (this.#mayBeWorkerAway(error)) void this.suspect();
      throw error;
    });
  }

  /**
   * Runs a search for background work on all shards that can be reached. If the search fails with an error that an
   * unreachable worker can cause, finds out which shards are unreachable, and repeats the search without them.
   */
  async lookUp<Result>(read: (reachable: Reachable) => Promise<Result>): Promise<Result> {
    await this.#probeAgain();
    try {
      return await read(this.#reachable);
    } catch (error) {
      if (!this.#mayBeWorkerAway(error)) throw error;
      const before = this.#unavailable.size;
      await this.#probe(() => this.#probeAll());
      if (this.#unavailable.size === before) throw error;
      return await read(this.#reachable);
    }
  }

  #mayBeWorkerAway(error: unknown): boolean {
    return this.#parts.length > 0 && (isConnectionLost(error) || mayBeWorkerAway(error));
  }

  readonly #reachable: Reachable = (table, buckets) => {
    if (this.#unavailable.size === 0 && buckets === undefined) return '';
    const away = new Set(this.unavailable().flatMap((part) => part.buckets));
    const left = (buckets ?? EVERYTHING.buckets).filter((bucket) => !away.has(bucket));
    return left.length === 0 ? ' AND false' : ` AND ${table}.bucket IN (${left.join(', ')})`;
  };

  /** Waits for the probe that is running. If none is running, starts `probe` and waits for it. */
  #probe(probe: () => Promise<unknown>): Promise<void> {
    this.#probing ??= probe()
      .then(() => {})
      .finally(() => {
        this.#probing = null;
        this.#probedAtMs = performance.now();
      });
    return this.#probing;
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #probeAll(): Promise<void> {
    await Promise.all(this.#parts.filter((part) => !this.#unavailable.has(part)).map((part) => this.#isReached(part)));
  }

  /** Probes an unreachable part, at most once a second. */
  async #probeAgain(): Promise<void> {
    if (this.#unavailable.size > 0 && performance.now() - this.#probedAtMs >= PROBE_PAUSE_MS)
      await this.#probe(() => this.#probeUnavailable());
  }

  /** Probes one of the unreachable parts. If that part is reachable again, probes the other unreachable parts. */
  async #probeUnavailable(): Promise<void> {
    const unavailable = this.unavailable();
    const first = unavailable[Math.floor(Math.random() * unavailable.length)] as Part;
    if (!(await this.#isReached(first))) return;
    await Promise.all(unavailable.filter((part) => part !== first).map((part) => this.#isReached(part)));
  }

  /** @throws the error from the coordinator if the coordinator itself fails */
  async #isReached(part: Part): Promise<boolean> {
    try {
      await this.#pool.send([
        BEGIN,
        ...setLocal({ statement_timeout: PROBE_TIMEOUT_MS }),
        sql(`SELECT 1 FROM scrip.feed_consumers WHERE bucket = ${part.bucket} LIMIT 1`),
        ROLLBACK,
      ]);
    } catch (error) {
      if (!isWorkerAway(error) && !mayBeWorkerAway(error)) throw error;
      this.#unavailable.set(part, (error as Error).message);
      return false;
    }
    this.#unavailable.delete(part);
    return true;
  }
}

function partAway({ name }: Part, reason: string): StoreFault {
  return new StoreFault('StoreUnavailable', `${name} cannot be reached: ${reason}`, { isPartial: true });
}
