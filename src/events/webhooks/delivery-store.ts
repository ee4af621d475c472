// Reads and writes the database for the webhook senders of this process. Each second, one database transaction stores
// the changes of all senders, because each transaction on SQLite blocks the main thread.

import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../../ledger/instant.ts';
import type { AccountDatabase, AccountQueries } from '../../store/account-database.ts';
import type { EventPosition } from '../../store/event-log.ts';
import {
  addDeliveries,
  DELIVERIES_PER_ENDPOINT_MAX,
  DELIVERIES_RETENTION_MS,
  type Delivery,
  lastDeliveredAt,
} from './deliveries.ts';
import type { QueuedEvent } from './delivery-queue.ts';
import { addPending } from './pending.ts';

/** The attempts of an event in `webhook_pending`: how many have failed, and when the next one is due. */
export interface Retry extends Pick<QueuedEvent, 'attempts' | 'firstAttemptAt' | 'nextAttemptAt'> {
  readonly place: number;
}

/** The changes for an endpoint that are not stored yet. */
export interface EndpointChanges {
  readonly endpointId: number;
  /** The revision that the sender has read. Pending events that a user restarted after it are not changed. */
  readonly revision: number;
  /** The number of changes in the database. If the database has another number, the changes must not be stored. */
  readonly storedChanges: number;
  /** Null if the position has not changed. */
  readonly position: EventPosition | null;
  /** Undelivered events before `position`, to insert into `webhook_pending`. */
  readonly passed: readonly QueuedEvent[];
  readonly retries: readonly Retry[];
  /** The `place` column of each row to delete from `webhook_pending`. */
  readonly finished: readonly number[];
  readonly deliveries: readonly Delivery[];
  /** Whether to make all pending events due now. */
  readonly isDue: boolean;
  /** Why the endpoint must be paused, as a sentence; null if there is no reason to pause it. */
  readonly pausedBecause: string | null;
  /** Whether to end the lease. */
  readonly isReleased: boolean;
}

/**
 * Maps each endpoint ID to the value of the `place` column for the first event in `passed`. The value is 0 if `passed`
 * is empty, and null if nothing was stored because the endpoint is no longer leased to this process, or because the
 * database has lost earlier changes in a crash or a failover.
 */
type StoredChanges = ReadonlyMap<number, number | null>;

const PENDING_PER_READ = 500;
const PLACES_PER_STATEMENT = 500;
/** On SQLite, writing this many deliveries blocks the main thread for a few milliseconds. */
const DELIVERIES_PER_TRANSACTION = 100;
const DELETED_MAX = 100;

export class DeliveryStore {
  readonly #database: AccountDatabase;
  readonly #process: string;

  /** @param process identifies this process in the `leased_by` column */
  constructor(database: AccountDatabase, process: string) {
    this.#database = database;
    this.#process = process;
  }

  /** The pending events of an endpoint, ordered by `place`, without their bodies. */
  async pending(endpointId: number): Promise<QueuedEvent[]> {
    const events: QueuedEvent[] = [];
    for (;;) {
      const rows = await this.#database.queries
        .selectFrom('webhook_pending')
        .select(['place', 'event_id as id', 'type', 'end_user_id as endUserId', 'attempts'])
        .select(['first_attempt_at as firstAttemptAt', 'next_attempt_at as nextAttemptAt'])
        .where('endpoint_id', '=', endpointId)
        .where('place', '>', events.at(-1)?.place ?? 0)
        .orderBy('place')
        .limit(PENDING_PER_READ)
        .execute();
      for (const row of rows)
        events.push({ ...row, queuedAt: row.firstAttemptAt, body: null, isSending: false, isDone: false });
      if (rows.length < PENDING_PER_READ) return events;
      await setImmediate();
    }
  }

  /** The body of a pending event; null if the event was removed. */
  async bodyOf(endpointId: number, { id, place }: Pick<QueuedEvent, 'id' | 'place'>): Promise<string | null> {
    const row = await this.#database.queries
      .selectFrom('webhook_pending')
      .select('body')
      .where('endpoint_id', '=', endpointId)
      .where('place', '=', place)
      .where('event_id', '=', id)
      .executeTakeFirst();
    return row?.body ?? null;
  }

  lastDeliveredAt(endpointId: number): Promise<Instant | null> {
    return lastDeliveredAt(this.#database.queries, endpointId);
  }

  /**
   * Stores the changes of all senders in one transaction. If a crash undoes the transaction, some events are delivered
   * again, but no event is lost: positions and pending events are stored together, and later changes are stored only if
   * the database still has all earlier ones. Call `storeDeliveries` afterwards.
   */
  async store(changes: readonly EndpointChanges[], now: Instant): Promise<StoredChanges> {
    // To avoid deadlocks, all processes lock the rows of endpoints in the same order.
    const ordered = [...changes].sort((a, b) => a.endpointId - b.endpointId);
    return this.#database.relaxed(async (queries) => {
      const stored = new Map<number, number | null>();
      let room = DELIVERIES_PER_TRANSACTION;
      for (const each of ordered) {
        const deliveries = each.deliveries.slice(0, room);
        room -= deliveries.length;
        stored.set(each.endpointId, await this.#storeOne(queries, { ...each, deliveries }, now));
      }
      return stored;
    });
  }

  /**
   * Stores the deliveries that did not fit into the transaction of `store`. A crash can lose records of deliveries, but
   * no event is lost, because `store` has already stored the positions and the pending events.
   */
  async storeDeliveries(changes: readonly EndpointChanges[], stored: StoredChanges): Promise<void> {
    let room = DELIVERIES_PER_TRANSACTION;
    for (const { endpointId, deliveries } of [...changes].sort((a, b) => a.endpointId - b.endpointId)) {
      let start = Math.min(room, deliveries.length);
      room -= start;
      if ((stored.get(endpointId) ?? null) === null) continue;
      for (; start < deliveries.length; start += DELIVERIES_PER_TRANSACTION) {
        await setImmediate();
        const some = deliveries.slice(start, start + DELIVERIES_PER_TRANSACTION);
        await this.#database.relaxed(async (queries) => {
          // This lock comes first, as in `store`: on Citus, the other order could deadlock with other processes.
          await lockEndpoint(queries, endpointId);
          await addDeliveries(queries, endpointId, some);
        });
      }
    }
  }

  /**
   * Deletes up to `DELETED_MAX` deliveries: those older than the retention time, and the oldest if the endpoint has
   * more than `DELIVERIES_PER_ENDPOINT_MAX`.
   *
   * @returns whether there might be more deliveries to delete
   */
  async deleteDeliveries(endpointId: number, now: Instant): Promise<boolean> {
    const { queries } = this.#database;
    const oldestKept = await queries
      .selectFrom('webhook_deliveries')
      .select('at')
      .where('endpoint_id', '=', endpointId)
      .orderBy('at', 'desc')
      .limit(1)
      .offset(DELIVERIES_PER_ENDPOINT_MAX - 1)
      .executeTakeFirst();
    const before = Math.max(now - DELIVERIES_RETENTION_MS, oldestKept?.at ?? 0);
    const rows = await queries
      .selectFrom('webhook_deliveries')
      .select('delivery_id')
      .where('endpoint_id', '=', endpointId)
      .where('at', '<', before)
      .orderBy('at')
      .limit(DELETED_MAX)
      .execute();
    if (rows.length === 0) return false;
    const ids = rows.map(({ delivery_id }) => delivery_id);
    await queries.deleteFrom('webhook_deliveries').where('delivery_id', 'in', ids).execute();
    return rows.length === DELETED_MAX;
  }

  /** Pauses an endpoint that is leased to this process, and ends the lease. */
  async pause(endpointId: number, because: string, now: Instant): Promise<void> {
    await this.#database.queries
      .updateTable('webhook_endpoints')
      .set({ leased_by: null, leased_until: 0, paused_at: now, paused_because: because })
      .where('endpoint_id', '=', endpointId)
      .where('leased_by', '=', this.#process)
      .execute();
  }

  /** @returns as in `StoredChanges` */
  async #storeOne(queries: AccountQueries, changes: EndpointChanges, now: Instant): Promise<number | null> {
    const { endpointId, revision, storedChanges, position, passed, retries, finished, deliveries } = changes;
    const { pausedBecause, isReleased } = changes;
    const { numUpdatedRows } = await queries
      .updateTable('webhook_endpoints')
      .set({
        changes: storedChanges + 1,
        leased_by: isReleased ? null : this.#process,
        ...(isReleased ? { leased_until: 0 } : {}),
        ...(position === null ? {} : { position }),
        ...(pausedBecause === null ? {} : { paused_at: now, paused_because: pausedBecause }),
      })
      .where('endpoint_id', '=', endpointId)
      .where('leased_by', '=', this.#process)
      .where('changes', '=', storedChanges)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return null;
    for (let start = 0; start < finished.length; start += PLACES_PER_STATEMENT)
      await queries
        .deleteFrom('webhook_pending')
        .where('endpoint_id', '=', endpointId)
        .where('place', 'in', finished.slice(start, start + PLACES_PER_STATEMENT))
        .where('restart_revision', '<=', revision)
        .execute();
    for (const { place, attempts, firstAttemptAt, nextAttemptAt } of retries)
      await queries
        .updateTable('webhook_pending')
        .set({ attempts, first_attempt_at: firstAttemptAt, next_attempt_at: nextAttemptAt })
        .where('endpoint_id', '=', endpointId)
        .where('place', '=', place)
        .where('restart_revision', '<=', revision)
        .execute();
    const rows = passed.map((event) => ({ ...event, eventId: event.id, body: event.body as string }));
    const firstPlace = rows.length === 0 ? 0 : await addPending(queries, endpointId, rows, now);
    if (changes.isDue)
      await queries
        .updateTable('webhook_pending')
        .set({ next_attempt_at: now })
        .where('endpoint_id', '=', endpointId)
        .where('next_attempt_at', '>', now)
        .execute();
    await addDeliveries(queries, endpointId, deliveries);
    return firstPlace;
  }
}

async function lockEndpoint(queries: AccountQueries, endpointId: number): Promise<void> {
  await queries
    .updateTable('webhook_endpoints')
    .set(({ ref }) => ({ revision: ref('revision') }))
    .where('endpoint_id', '=', endpointId)
    .execute();
}
