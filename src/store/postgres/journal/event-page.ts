// Reads pages of events from PostgreSQL. Events are numbered within each part, so a position has a number for each
// part: for example `41` in a single database, and `41.7.…` on Citus.

import type { Instant } from '../../../ledger/instant.ts';
import type { EventPage, EventPageRequest, EventPosition, EventType, LoggedEvent } from '../../event-log.ts';
import { InvalidCursor } from '../../store-fault.ts';
import type { Part } from '../citus/placement.ts';
import { exactInteger, type Query, sql, type TextRow } from '../pool/connection.ts';

/** For a page with only some event types, the query reads at most this many events. Reading them takes about 10 ms. */
const LOOKED_AT_MAX = 5_000;

/** For each part, the number of its last event before a position. The parts are in the order of `Placement.parts`. */
type PartNumbers = readonly number[];

export function positionText(numbers: PartNumbers): EventPosition {
  return numbers.join('.');
}

/**
 * @param position null for the position before the first event
 * @param latest the number of the latest event of each part
 * @throws InvalidCursor if the ledger has no such position
 */
export function numbersOf(position: EventPosition | null, latest: PartNumbers): PartNumbers {
  if (position === null) return latest.map(() => 0);
  const texts = position.split('.');
  const isValid =
    texts.length === latest.length &&
    texts.every((text, index) => /^(0|[1-9]\d{0,15})$/.test(text) && Number(text) <= (latest[index] ?? 0));
  if (!isValid) throw new InvalidCursor();
  return texts.map(Number);
}

/** Selects the number of the latest event of each part, except parts that have never had an event. */
export const LATEST_EVENTS = sql(
  `SELECT bucket, latest_event FROM scrip.feed_consumers WHERE consumer = 'events' AND latest_event > 0`,
);

/** @param rows each contains a part's bucket and a number; the number of a part without a row is 0 */
export function numbersIn(rows: readonly TextRow[], parts: readonly Part[]): PartNumbers {
  const numbers = new Map(rows.map(([bucket, number]) => [Number(bucket), exactInteger(number)]));
  return parts.map(({ bucket }) => numbers.get(bucket) ?? 0);
}

/**
 * Reads an account's events after a position: up to `limit + 1` events of the wanted types, each with its bucket,
 * number, ID, type, instant and data. For each part in which events were read, also returns a row with a null ID. In
 * this row, `event` is the number of the last event that was read in the part, and `at` is the number of events that
 * were read. A single statement reads all rows, so that they are from the same snapshot.
 */
export function pageQuery(
  account: number,
  { types, limit }: EventPageRequest,
  after: PartNumbers,
  parts: readonly Part[],
): Query {
  const columns = 'bucket, event, id, type, at, data, recorded_at';
  const inPart = ({ bucket }: Part, index: number) => `
    (SELECT ${columns} FROM scrip.events WHERE bucket = ${bucket} AND account = $1 AND event > $${index + 5}
     ORDER BY event LIMIT $2)`;
  return sql(
    `WITH looked_at AS MATERIALIZED (
       SELECT ${columns} FROM (${parts.map(inPart).join(' UNION ALL ')}) AS e ORDER BY recorded_at, bucket, event LIMIT $2
     )
     SELECT * FROM (
       (SELECT ${columns} FROM looked_at WHERE $3::text[] IS NULL OR type = ANY ($3::text[])
        ORDER BY recorded_at, bucket, event LIMIT $4)
       UNION ALL SELECT bucket, max(event), NULL, NULL, count(*), NULL, NULL FROM looked_at GROUP BY bucket
     ) AS p ORDER BY recorded_at NULLS LAST, bucket, event`,
    [account, types ? LOOKED_AT_MAX : limit + 1, types ? `{${types}}` : null, limit + 1, ...after],
  );
}

/** @param rows the rows of `pageQuery` */
export function pageOf(
  rows: readonly TextRow[],
  { types, limit }: EventPageRequest,
  after: PartNumbers,
  parts: readonly Part[],
): EventPage {
  const places = new Map(parts.map(({ bucket }, index) => [bucket, index]));
  const numbers = [...after];
  const moveTo = ([bucket, event]: TextRow) => {
    numbers[places.get(Number(bucket)) as number] = exactInteger(event);
  };
  const found = rows.filter(([, , id]) => id !== null);
  const events = found.slice(0, limit).map((row): LoggedEvent => {
    const [, , id, type, at, data] = row as readonly string[];
    moveTo(row);
    return {
      id: id as string,
      type: type as EventType,
      at: exactInteger(at),
      data: data as string,
      position: positionText(numbers),
    };
  });
  if (found.length > limit) return { events, position: positionText(numbers), hasMore: true };
  const lookedAt = rows.filter(([, , id]) => id === null);
  for (const row of lookedAt) moveTo(row);
  const count = lookedAt.reduce((sum, [, , , , looked]) => sum + Number(looked), 0);
  return { events, position: positionText(numbers), hasMore: types !== undefined && count === LOOKED_AT_MAX };
}

/**
 * For each part, selects the number of the last event that was recorded before the given instant. If all stored events
 * were recorded at this instant or later, selects one less than the number of the oldest stored event. If all events
 * have been deleted, selects the number of the latest deleted event. If the part never had an event, selects 0.
 */
export function lastBefore(instant: Instant, parts: readonly Part[]): Query {
  // The events of a part are recorded in the order of their numbers, and the instant is usually recent. A scan that
  // starts at the latest event is therefore short.
  const inPart = ({ bucket }: Part) => `
    SELECT bucket, coalesce(
      (SELECT event FROM scrip.events WHERE bucket = ${bucket} AND recorded_at < $1 ORDER BY event DESC LIMIT 1),
      (SELECT min(event) - 1 FROM scrip.events WHERE bucket = ${bucket}), latest_event
    ) FROM scrip.feed_consumers WHERE bucket = ${bucket} AND consumer = 'events'`;
  return sql(parts.map(inPart).join(' UNION ALL '), [instant]);
}

/** Selects the bucket of each part whose oldest event was recorded before `instant`. */
export function expiredParts(instant: Instant, parts: readonly Part[]): Query {
  const inPart = ({ bucket }: Part) =>
    `(SELECT bucket, recorded_at FROM scrip.events WHERE bucket = ${bucket} ORDER BY event LIMIT 1)`;
  return sql(`SELECT bucket FROM (${parts.map(inPart).join(' UNION ALL ')}) AS oldest WHERE recorded_at < $1`, [
    instant,
  ]);
}

/** Of the `limit` oldest events of a part, deletes those that were recorded before an instant. */
export function deleteBefore({ bucket }: Part, instant: Instant, limit: number): Query {
  return sql(
    `DELETE FROM scrip.events e WHERE e.bucket = ${bucket} AND e.recorded_at < $1 AND e.event IN (
       SELECT o.event FROM scrip.events o WHERE o.bucket = ${bucket} ORDER BY o.event LIMIT $2
     )`,
    [instant, limit],
  );
}
