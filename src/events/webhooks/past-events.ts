// Finds the events in a time range, to resend them. The event log is not indexed by time, so the search reads all
// events of the account. The search uses many short queries, because each query on SQLite blocks the main thread.

import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../../ledger/instant.ts';
import type { AccountQueries } from '../../store/account-database.ts';
import { type EventType, eventBody } from '../../store/event-log.ts';
import type { NewPending } from './pending.ts';

const EVENTS_PER_STEP = 10_000;

interface Range {
  readonly from: Instant;
  /** Exclusive. */
  readonly to: Instant;
  readonly max: number;
}

/**
 * @param endpoint limits the search to the events of its account, and to the types that it receives
 * @returns the events in the order in which they happened; null if there are more than `max`
 */
export async function eventsIn(
  queries: AccountQueries,
  { account, types }: { readonly account: number; readonly types: readonly EventType[] },
  { from, to, max }: Range,
): Promise<NewPending[] | null> {
  const ofAccount = queries.selectFrom('events').where('account', '=', account);
  // Two queries, because SQLite uses the index for `min` or `max` alone, but reads all rows for a query with both.
  const first = await ofAccount.select(({ fn }) => fn.min('event').as('event')).executeTakeFirst();
  const last = await ofAccount.select(({ fn }) => fn.max('event').as('event')).executeTakeFirst();
  const found = [];
  for (let start = first?.event ?? 1; start <= (last?.event ?? 0); start += EVENTS_PER_STEP) {
    const rows = await ofAccount
      .select(['event', 'id', 'type', 'at', 'data'])
      .where('event', '>=', start)
      .where('event', '<', start + EVENTS_PER_STEP)
      .where('at', '>=', from)
      .where('at', '<', to)
      .$if(types.length > 0, (query) => query.where('type', 'in', types))
      .limit(max + 1)
      .execute();
    for (const row of rows) found.push(row);
    if (found.length > max) return null;
    await setImmediate();
  }
  found.sort((a, b) => a.at - b.at || a.event - b.event);
  return found.map(({ id, type, at, data }) => {
    const { end_user_id: endUserId } = JSON.parse(data) as { end_user_id: string };
    return { eventId: id, type, endUserId, body: eventBody({ id, type: type as EventType, at, data }) };
  });
}
