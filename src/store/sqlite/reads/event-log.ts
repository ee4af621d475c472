// Derives the events of a ledger file from the journal and the passage of time, and reads stored events. The read
// connection loads the postings, the states and the settings. The writer stores the events.

import assert from 'node:assert/strict';
import type { Instant } from '../../../ledger/instant.ts';
import {
  type DeriveEvents,
  EVENTS_PER_PAGE_MAX,
  type EventLog,
  type EventPage,
  type EventPageRequest,
  type EventPosition,
  type EventType,
  type LoggedEvent,
} from '../../event-log.ts';
import { InvalidCursor } from '../../store-fault.ts';
import { prepare, type Row, readTogether, type Statement } from '../file/statements.ts';
import { EventSteps } from '../journal/event-steps.ts';
import type { SqliteLedgerStore } from './ledger-store.ts';

/** For a page with only some event types, at most this many events are examined. Examining them takes about 1 ms. */
const LOOKED_AT_MAX = 5_000;

export class SqliteEventLog implements EventLog {
  readonly epoch: string;
  readonly #ledger: SqliteLedgerStore;
  readonly #steps: EventSteps;
  readonly #latest: Statement;
  readonly #range: Statement;
  readonly #page: Statement;
  readonly #next: Statement;
  readonly #oldest: Statement;
  readonly #before: Statement;

  constructor(ledger: SqliteLedgerStore) {
    const { db } = ledger;
    this.#ledger = ledger;
    this.epoch = String(db.prepare('SELECT hex(epoch) AS epoch FROM event_log').get()?.epoch);
    this.#steps = new EventSteps(db, (read) => ledger.attempt(read));
    this.#latest = prepare(db, "SELECT seq FROM sqlite_sequence WHERE name = 'events'");
    this.#range = prepare(
      db,
      'SELECT max(event) FROM (SELECT event FROM events WHERE account = ? AND event > ? ORDER BY event LIMIT ?)',
    );
    this.#page = prepare(
      db,
      `SELECT event, id, type, at, data FROM events WHERE account = ?1 AND event > ?2 AND event <= ?3
         AND (?4 IS NULL OR type IN (SELECT value FROM json_each(?4))) ORDER BY event LIMIT ?5`,
    );
    this.#next = prepare(db, 'SELECT 1 FROM events WHERE account = ? AND event > ? LIMIT 1');
    this.#oldest = prepare(db, 'SELECT event, recorded_at FROM events ORDER BY event LIMIT 1');
    this.#before = prepare(
      db,
      'SELECT event, recorded_at FROM events WHERE event BETWEEN ? AND ? ORDER BY event DESC LIMIT 1',
    );
  }

  async deriveNext(derive: DeriveEvents): Promise<boolean> {
    const { clock } = this.#ledger;
    let step = readTogether(this.#ledger.db, () => this.#steps.next());
    let until: Instant | null = null;
    if (!step.isMore && this.#steps.hasDue(clock.peek())) {
      // Wait for the batches in flight, because they can write postings that are earlier than `passed`. Then read the
      // journal again.
      const passed = await this.#ledger.passedInstant();
      step = readTogether(this.#ledger.db, () => {
        const next = this.#steps.next();
        // Set `until` even if there is no room for all due end users: those in the step must not stay due.
        if (!next.isMore) {
          until = passed;
          this.#steps.addDue(next, passed);
        }
        return next;
      });
    }
    if (step.isEmpty) return false;
    const isSaved = await this.#ledger.writer.call('saveEvents', step.derive(derive, until));
    // By now, time-driven events might be due for more end users, including end users of this step.
    return step.isMore || !isSaved || this.#steps.hasDue(clock.peek());
  }

  async page(account: number, { after, types, limit }: EventPageRequest): Promise<EventPage> {
    assert(limit >= 1 && limit <= EVENTS_PER_PAGE_MAX, 'the API limits the size of a page');
    return this.#ledger.attempt(() => {
      const start = after === null ? 0 : this.#numberOf(after);
      const lookedAt = types === undefined ? limit : LOOKED_AT_MAX;
      const end = Number(this.#range.get(account, start, lookedAt)?.[0] ?? start);
      const wanted = types === undefined ? null : JSON.stringify(types);
      const events = this.#page.all(account, start, end, wanted, limit).map(eventOf);
      const position = events.length === limit ? (events.at(-1) as LoggedEvent).position : String(end);
      return { events, position, hasMore: this.#next.get(account, Number(position)) !== undefined };
    });
  }

  async latest(): Promise<EventPosition> {
    return this.#ledger.attempt(() => String(this.#latestNumber()));
  }

  /** Uses a binary search, because `recorded_at` ascends with the event numbers. The numbers can have gaps. */
  async positionBefore(instant: Instant): Promise<EventPosition> {
    return this.#ledger.attempt(() => {
      const oldest = this.#oldest.get()?.[0] ?? null;
      let high = this.#latestNumber();
      if (oldest === null) return String(high);
      let low = Number(oldest) - 1;
      // Every event up to `low` was recorded before `instant`, and every event after `high` was recorded at `instant`
      // or later.
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        const found = this.#before.get(low + 1, middle) as [event: number, recordedAt: Instant] | undefined;
        if (found === undefined || found[1] < instant) low = middle;
        else high = found[0] - 1;
      }
      return String(low);
    });
  }

  async deleteExpired(retentionMs: number): Promise<boolean> {
    const { clock } = this.#ledger;
    const before = clock.machineTime(clock.peek()) - retentionMs;
    const recordedAt = this.#ledger.attempt(() => this.#oldest.get()?.[1] as Instant | undefined);
    if (recordedAt === undefined || recordedAt >= before) return false;
    return this.#ledger.writer.call('deleteExpiredEvents', retentionMs);
  }

  /** @throws InvalidCursor */
  #numberOf(position: EventPosition): number {
    const number = /^\d{1,16}$/.test(position) ? Number(position) : Number.NaN;
    if (!(number <= this.#latestNumber())) throw new InvalidCursor();
    return number;
  }

  /** Returns the number of the latest event, even if the event has been deleted; 0 if there was never an event. */
  #latestNumber(): number {
    return Number(this.#latest.get()?.[0] ?? 0);
  }
}

function eventOf(row: Row): LoggedEvent {
  const [event, id, type, at, data] = row as [number, string, EventType, Instant, string];
  return { id, type, at, data, position: String(event) };
}
