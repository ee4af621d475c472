// The event log in PostgreSQL. A part is a Citus shard; without Citus, the only part is the whole database. Each
// process derives events for one part at a time, and skips the parts that other processes are working on.

import { randomInt } from 'node:crypto';
import type { Instant } from '../../../ledger/instant.ts';
import type { DeriveEvents, EventLog, EventPage, EventPageRequest, EventPosition } from '../../event-log.ts';
import { partsIn } from '../citus/placement.ts';
import {
  deleteBefore,
  expiredParts,
  LATEST_EVENTS,
  lastBefore,
  numbersIn,
  numbersOf,
  pageOf,
  pageQuery,
  positionText,
} from '../journal/event-page.ts';
import { deriveSome, dueBuckets } from '../journal/events.ts';
import { ofParts, partsInFeed } from '../journal/feed.ts';
import { sql } from '../pool/connection.ts';
import { attempt } from '../pool/postgres-error.ts';
import { BEGIN_UNPROMISED, COMMIT } from '../pool/transactions.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';

/** One call of `deleteExpired` deletes at most this many events, which takes the server about 5 ms. */
const DELETED_MAX = 1_000;

/** Unlike an `Internal` fault of the ledger, an `Internal` fault of the event log does not stop writes. */
export class PostgresEventLog implements EventLog {
  readonly epoch: string;
  readonly #database: LedgerDatabase;

  private constructor(database: LedgerDatabase, epoch: string) {
    this.#database = database;
    this.epoch = epoch;
  }

  static async open(database: LedgerDatabase): Promise<PostgresEventLog> {
    const [row] = await database.pool.rows(sql('SELECT epoch FROM scrip.event_log'));
    return new PostgresEventLog(database, row?.[0] as string);
  }

  deriveNext(derive: DeriveEvents): Promise<boolean | null> {
    const { pool, clock, placement, reach } = this.#database;
    return attempt(async () => {
      // Look for work first, so that an idle database gets no writes.
      const now = await clock.peek(pool);
      const results = await reach.lookUp((reachable) =>
        pool.send([partsInFeed('events', reachable), dueBuckets(now, reachable)]),
      );
      const found = results.flatMap(({ rows }) => rows);
      const step = { derive, clock, begin: placement.begin };
      return ofParts(partsIn(found, placement), (part) =>
        pool.use((connection) => deriveSome(connection, part, now, step)),
      );
    });
  }

  page(account: number, request: EventPageRequest): Promise<EventPage> {
    const { pool, placement } = this.#database;
    const { parts } = placement;
    return attempt(async () => {
      const latest = request.after === null ? [] : await pool.rows(LATEST_EVENTS);
      const after = numbersOf(request.after, numbersIn(latest, parts));
      const rows = await pool.rows(pageQuery(account, request, after, parts));
      return pageOf(rows, request, after, parts);
    });
  }

  latest(): Promise<EventPosition> {
    const { pool, placement } = this.#database;
    return attempt(async () => positionText(numbersIn(await pool.rows(LATEST_EVENTS), placement.parts)));
  }

  positionBefore(instant: Instant): Promise<EventPosition> {
    const { pool, placement } = this.#database;
    const { parts } = placement;
    return attempt(async () => positionText(numbersIn(await pool.rows(lastBefore(instant, parts)), parts)));
  }

  /** Deletes expired events of a random part, so that several processes usually choose different parts. */
  deleteExpired(retentionMs: number): Promise<boolean> {
    const { pool, clock, placement, reach } = this.#database;
    return attempt(async () => {
      const unavailable = reach.unavailable();
      const parts = placement.parts.filter((part) => !unavailable.includes(part));
      if (parts.length === 0) return false;
      const before = (await clock.peekMachine(pool)) - retentionMs;
      const buckets = new Set((await pool.rows(expiredParts(before, parts))).map(([bucket]) => Number(bucket)));
      const expired = parts.filter(({ bucket }) => buckets.has(bucket));
      const part = expired.length === 0 ? undefined : expired[randomInt(expired.length)];
      if (part === undefined) return false;
      const deletion = deleteBefore(part, before, DELETED_MAX);
      const results = await pool.send([...BEGIN_UNPROMISED, ...placement.byKey, deletion, COMMIT]);
      return results.at(-2)?.rowCount === DELETED_MAX || expired.length > 1;
    });
  }
}
