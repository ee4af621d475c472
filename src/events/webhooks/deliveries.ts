// The rows of `webhook_deliveries`: the latest attempts to deliver events, for the console and the command line.

import { randomBytes } from 'node:crypto';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { AccountQueries } from '../../store/account-database.ts';
import type { RequestResult } from './request.ts';

/** An attempt to deliver an event. */
export interface Delivery extends Omit<RequestResult, 'kind'> {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  readonly at: Instant;
}

export const DELIVERIES_PER_ENDPOINT_MAX = 10_000;
export const DELIVERIES_RETENTION_MS = 7 * DAY_MS;
const ROWS_PER_STATEMENT = 500;
const INSTANT_DIGITS = 15;

/** The IDs of deliveries sort by time, so an ID can be used as the cursor of a page. */
export function newDeliveryId(at: Instant): string {
  return `dlv_${String(at).padStart(INSTANT_DIGITS, '0')}${randomBytes(8).toString('hex')}`;
}

export function deliveriesOf(queries: AccountQueries, endpointId: number) {
  return queries
    .selectFrom('webhook_deliveries')
    .select(['delivery_id as id', 'event_id as eventId', 'type', 'body', 'attempt', 'at'])
    .select(['duration_ms as durationMs', 'status', 'error', 'answer'])
    .where('endpoint_id', '=', endpointId);
}

/** @param page `before` is the ID of the last delivery on the previous page; null for the first page */
export async function deliveriesPage(
  queries: AccountQueries,
  endpointId: number,
  { before, limit }: { readonly before: string | null; readonly limit: number },
): Promise<{ deliveries: readonly Delivery[]; next: string | null }> {
  const at = before === null ? null : instantIn(before);
  const rows = await deliveriesOf(queries, endpointId)
    .$if(at !== null, (query) =>
      query.where((eb) => eb.and([eb('at', '<=', at), eb.or([eb('at', '<', at), eb('delivery_id', '<', before)])])),
    )
    .orderBy('at', 'desc')
    .orderBy('delivery_id', 'desc')
    .limit(limit + 1)
    .execute();
  const deliveries = rows.slice(0, limit);
  return { deliveries, next: rows.length > limit ? (deliveries.at(-1)?.id ?? null) : null };
}

/**
 * Returns the instant that a delivery ID contains. For any other text, returns 0, so that the page is empty: no
 * delivery is that old.
 */
function instantIn(id: string): Instant {
  return Number(new RegExp(`^dlv_(\\d{${INSTANT_DIGITS}})[0-9a-f]{16}$`).exec(id)?.[1] ?? 0);
}

/** The time of the latest successful delivery to an endpoint; null if no successful delivery is stored. */
export async function lastDeliveredAt(queries: AccountQueries, endpointId: number): Promise<Instant | null> {
  const row = await queries
    .selectFrom('webhook_deliveries')
    .select('at')
    .where('endpoint_id', '=', endpointId)
    .where('error', 'is', null)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.at ?? null;
}

export async function addDeliveries(
  queries: AccountQueries,
  endpointId: number,
  deliveries: readonly Delivery[],
): Promise<void> {
  const rows = deliveries.map(({ id, eventId, durationMs, ...others }) => ({
    ...{ delivery_id: id, endpoint_id: endpointId, event_id: eventId, duration_ms: durationMs },
    ...others,
  }));
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT)
    await queries
      .insertInto('webhook_deliveries')
      .values(rows.slice(start, start + ROWS_PER_STATEMENT))
      .execute();
}
