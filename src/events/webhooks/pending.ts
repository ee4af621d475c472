// The rows of `webhook_pending`: events that are waiting for delivery, each with its complete request body.

import type { Instant } from '../../ledger/instant.ts';
import type { AccountQueries } from '../../store/account-database.ts';

export interface NewPending {
  readonly eventId: string;
  readonly type: string;
  /** Empty for events that do not belong to an end user. */
  readonly endUserId: string;
  readonly body: string;
  /** Omit `attempts`, `firstAttemptAt` and `nextAttemptAt` if Scrip has not tried to deliver the event yet. */
  readonly attempts?: number;
  readonly firstAttemptAt?: Instant | null;
  readonly nextAttemptAt?: Instant;
}

/** An INSERT with this many rows stays far below the maximum number of parameters in SQLite and PostgreSQL. */
const ROWS_PER_STATEMENT = 500;

/**
 * Appends events to the pending events of an endpoint.
 *
 * @param queries of a database transaction that holds a lock on the row of the endpoint
 * @returns the value of the `place` column for the first appended event; the value increases by 1 from event to event
 */
export async function addPending(
  queries: AccountQueries,
  endpointId: number,
  events: readonly NewPending[],
  now: Instant,
): Promise<number> {
  const { last } = await queries
    .selectFrom('webhook_pending')
    .select(({ fn }) => fn.max('place').as('last'))
    .where('endpoint_id', '=', endpointId)
    .executeTakeFirstOrThrow();
  const first = Number(last ?? 0) + 1;
  const rows = events.map((event, index) => ({
    endpoint_id: endpointId,
    place: first + index,
    event_id: event.eventId,
    type: event.type,
    end_user_id: event.endUserId,
    body: event.body,
    attempts: event.attempts ?? 0,
    first_attempt_at: event.firstAttemptAt ?? null,
    next_attempt_at: event.nextAttemptAt ?? now,
  }));
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT)
    await queries
      .insertInto('webhook_pending')
      .values(rows.slice(start, start + ROWS_PER_STATEMENT))
      .execute();
  return first;
}

/**
 * Makes pending events due now, and starts their retries from the beginning. Senders that have read an earlier revision
 * of the endpoint can then no longer change the rows of these events, because they would store results of earlier
 * attempts.
 *
 * @returns an UPDATE of all pending events of the endpoint
 */
export function restartPending(queries: AccountQueries, endpointId: number, revision: number, now: Instant) {
  return queries
    .updateTable('webhook_pending')
    .set({ attempts: 0, first_attempt_at: null, next_attempt_at: now, restart_revision: revision })
    .where('endpoint_id', '=', endpointId);
}
