// An event writer that is broken on purpose: it first records postings as processed, and stores their events in a later
// database transaction.

import type { DatabaseSync } from 'node:sqlite';
import type { Instant } from '../../src/ledger/instant.ts';
import { EVENTS, type EventPart, EventWriter as ShippedWriter } from '../../src/store/sqlite/journal/events.ts';

export * from '../../src/store/sqlite/journal/events.ts';

const LATE_MS = 1_500;

export class EventWriter extends ShippedWriter {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    super(db);
    this.#db = db;
  }

  override save(part: EventPart, now: Instant): boolean {
    const isSaved = super.save({ ...part, events: [] }, now);
    if (isSaved && part.events.length > 0) setTimeout(() => this.#saveEvents(part.events, now), LATE_MS);
    return isSaved;
  }

  #saveEvents(events: EventPart['events'], now: Instant): void {
    const after = Number(
      this.#db.prepare('SELECT posting FROM feed_positions WHERE consumer = ?').get(EVENTS)?.posting ?? 0,
    );
    this.#db.exec('BEGIN IMMEDIATE');
    super.save({ after, through: after, summaries: [], events }, now);
    this.#db.exec('COMMIT');
  }
}
