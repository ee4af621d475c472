// The one writer of a ledger file: loads what a batch needs, lets the ledger decide, appends to the journal and commits.
// Synchronous; `writer-thread.ts` gives it a thread of its own.
//
//   writing ──COMMIT fails──▶ closed ──next batch──▶ reopened, writing
//      └─────an invariant is violated──▶ halted, for good: a stopped ledger is better than a wrong one

import type { DatabaseSync } from 'node:sqlite';
import { batchOf, decideBatch } from '../../../ledger/batch.ts';
import { ACCEPTED, type Command, type Outcome } from '../../../ledger/command.ts';
import { NO_RECORDS } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { IdempotencyRetention } from '../../ledger-store.ts';
import { CannotOpen, StoreFault } from '../../store-fault.ts';
import { TransactionIds } from '../../transaction-ids.ts';
import { CACHE_LIMITS, type CachedEndUser, type CacheLimits, EndUserCache } from '../balances/end-user-cache.ts';
import { connect, explained, refuseWithoutDurability } from '../file/ledger-file.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { RecordTable } from '../idempotency/record-table.ts';
import { type FeedPart, FeedWriter } from '../journal/feed.ts';
import { JournalWriter } from '../journal/journal-writer.ts';
import { type LedgerClock, SavedClock } from './ledger-clock.ts';

/**
 * How many events of time one batch enters: about 10 ms of work, so that ten years of daily periods never hold up the
 * requests beside them for longer.
 */
const EVENTS_PER_BATCH_MAX = 1_000;

/** About 20 ms of work; a write that arrives during it has to wait. */
const FLUSHED_WHEN_IDLE = 2_000;
const FLUSHED_AT_CLOSE = 10_000;

/** A stop waits for it; what is pending then is found in the journal by the next start. */
const CLOSE_MS = 1_000;

/** SQLite looks through all of its page cache with each COMMIT that adds pages. */
const PAGE_CACHE_KIB = 4 * 1_024;

export interface WriterOptions {
  readonly cache: CacheLimits;
  /** Idempotency records that are indexed together. */
  readonly indexRunMax: number;
}

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  /** For each command, the latest posting of its end user where that may be pending; else 0. */
  readonly latestPostings: readonly number[];
  /** How often all that was pending in the generation before has been flushed. */
  readonly rotations: number;
}

/** A connection with all that writes through it. It is not used again after a transaction that failed. */
interface OpenLedger {
  readonly db: DatabaseSync;
  readonly endUsers: EndUserCache;
  readonly journal: JournalWriter;
  readonly records: RecordTable;
  readonly feed: FeedWriter;
  readonly clock: SavedClock;
}

export class Writer {
  readonly #file: string;
  readonly #clock: LedgerClock;
  readonly #options: Partial<WriterOptions>;
  #open: OpenLedger | null = null;
  #halted: StoreFault | null = null;
  /** Survives a reopening: what was given out once is never given out again, stored or not. */
  #ids = new TransactionIds({ at: 0, sequence: 0 });
  /** The instant that the file holds. */
  #savedAt = 0;
  /** Whether nothing was written since the last tick. */
  #isIdle = false;

  /** @throws CannotOpen when the file does not keep its durability settings */
  constructor(file: string, clock: LedgerClock, options: Partial<WriterOptions> = {}) {
    this.#file = file;
    this.#clock = clock;
    this.#options = options;
    try {
      this.#reopen();
    } catch (error) {
      throw explained(file, error);
    }
  }

  /** @throws StoreFault */
  write(commands: readonly Command[]): Written {
    this.#isIdle = false;
    return this.#transact(({ endUsers, journal, records }) => {
      const now = this.#now();
      const batch = batchOf(commands);
      const cached = batch.users.map((user, index) => endUsers.load(user, batch.names[index] as string, now));
      const isKeyed = batch.recordNames.some((name) => name !== null);
      const loaded = { states: cached.map(({ state }) => state), records: isKeyed ? records.load(batch) : NO_RECORDS };
      const moment = { now, nextId: () => this.#ids.next() };
      const decided = decideBatch(batch, loaded, moment, EVENTS_PER_BATCH_MAX);
      const changed = decided.changes.map(({ index, user, postings, after }) => {
        const one = cached[index] as CachedEndUser;
        const latest = journal.append(user, postings, one.latestPosting, after);
        endUsers.change(one, after, postings.length, latest);
        // What is due next for it, or no longer is, is found in the file.
        if (postings.some(({ kind }) => kind !== 'add' && kind !== 'subtract')) endUsers.flush(one);
        return one;
      });
      journal.flush();
      if (decided.records.length > 0) records.insert(decided.records);
      const isFlushed = endUsers.keepUp(changed);
      const latest = cached.map(({ pendingPostings, latestPosting }) =>
        pendingPostings > 0 ? (latestPosting ?? 0) : 0,
      );
      const result = {
        outcomes: decided.outcomes,
        latestPostings: batch.userOf.map((index) => latest[index] as number),
        rotations: endUsers.takeRotations(),
      };
      return { result, isChanged: isFlushed || decided.records.length > 0 };
    });
  }

  /**
   * Called now and then. Saves the latest instant that a reader has seen, so that it still counts after a restart, opens
   * the file again after a fault, and flushes what is pending when nothing was written since the last time.
   *
   * @returns the rotations, as `write` does
   * @throws StoreFault
   */
  tick(flushedMax = FLUSHED_WHEN_IDLE): number {
    const isIdle = this.#isIdle;
    this.#isIdle = true;
    const isSaved = this.#open !== null && this.#clock.latest() <= this.#savedAt;
    if (this.#halted === null && isSaved && !(isIdle && this.#open?.endUsers.hasPending)) return 0;
    return this.#transact(({ endUsers }) => {
      this.#now();
      if (isIdle && endUsers.hasPending) endUsers.flushIdle(flushedMax);
      return { result: endUsers.takeRotations(), isChanged: true };
    });
  }

  /**
   * Stores what a consumer made of a part of the feed, with its position.
   *
   * @returns false when the position is another by now, and nothing was stored
   * @throws StoreFault, as do those below
   */
  saveFeedPart(part: FeedPart): boolean {
    return this.#transact(({ feed }) => {
      const isSaved = feed.save(part);
      return { result: isSaved, isChanged: isSaved };
    });
  }

  /**
   * Asked for once a second: where nothing has expired it moves no clock, so that an idle ledger is not written to.
   *
   * @returns whether there may be more
   */
  deleteExpiredRecords({ grantsMs, othersMs }: IdempotencyRetention): boolean {
    return this.#transact(({ records }) => {
      const now = this.#clock.peek();
      const grants = records.sweep({ grants: true, before: now - grantsMs });
      const others = records.sweep({ grants: false, before: now - othersMs });
      return { result: grants.isMore || others.isMore, isChanged: grants.deleted + others.deleted > 0 };
    });
  }

  /** Records that these API keys were used now. */
  recordKeyUses(ids: readonly number[]): void {
    this.#transact(({ db }) => {
      const update = 'UPDATE api_keys SET last_used_at = ? WHERE key_id IN (SELECT value FROM json_each(?))';
      db.prepare(update).run(this.#now(), JSON.stringify(ids));
      return { result: undefined, isChanged: true };
    });
  }

  close(): void {
    try {
      if (this.#halted === null) this.#flushAll();
      this.#open?.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      this.#disconnect();
    }
  }

  /** The next start then finds nothing pending, or little. */
  #flushAll(): void {
    const began = performance.now();
    do {
      this.#isIdle = true;
      this.tick(FLUSHED_AT_CLOSE);
    } while (this.#open?.endUsers.hasPending && performance.now() - began < CLOSE_MS);
  }

  /** Runs `work` in a transaction, which is committed if something was changed. */
  #transact<Result>(work: (ledger: OpenLedger) => { result: Result; isChanged: boolean }): Result {
    if (this.#halted) throw this.#halted;
    try {
      const ledger = this.#open ?? this.#reopen();
      ledger.db.exec('BEGIN IMMEDIATE');
      const { result, isChanged } = work(ledger);
      if (isChanged) this.#commit(ledger);
      else ledger.db.exec('ROLLBACK');
      return result;
    } catch (error) {
      throw this.#abandon(
        error instanceof CannotOpen ? new StoreFault('StoreUnavailable', error.message) : faultOf(error),
      );
    }
  }

  /** The instant of a batch. When the clock stands still for so long that the ids run short, it is moved on. */
  #now(): Instant {
    const { at } = this.#ids.position;
    const now = this.#ids.isRunningShort ? this.#clock.notBefore(at + 1) : this.#clock.now();
    this.#ids.moveTo(now);
    return now;
  }

  /** With the position of the clock. A COMMIT that fails may have happened: only reopening the file tells. */
  #commit(ledger: OpenLedger): void {
    ledger.clock.save(this.#ids.position);
    try {
      ledger.db.exec('COMMIT');
    } catch (error) {
      throw new StoreFault('OutcomeUnknown', (error as Error).message);
    }
    this.#savedAt = this.#ids.position.at;
  }

  /** After any fault the connection is not trusted any more. Closing it rolls back what was not committed. */
  #abandon(fault: StoreFault): StoreFault {
    if (fault.code === 'Internal') this.#halted = fault;
    this.#disconnect();
    return fault;
  }

  #reopen(): OpenLedger {
    const db: DatabaseSync = connect(this.#file);
    try {
      db.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
      const { cache = CACHE_LIMITS, indexRunMax } = this.#options;
      const journal = new JournalWriter(db);
      const clock = new SavedClock(db);
      const saved = clock.read(journal.latest > 0);
      const endUsers = new EndUserCache(db, cache, journal.latest);
      const records = new RecordTable(db, indexRunMax);
      const ledger: OpenLedger = { db, endUsers, journal, records, feed: new FeedWriter(db), clock };
      this.#clock.notBefore(saved.at);
      const given = this.#ids.position;
      const isSavedLater = saved.at > given.at || (saved.at === given.at && saved.sequence > given.sequence);
      if (isSavedLater) this.#ids = new TransactionIds(saved);
      this.#now();
      db.exec('BEGIN IMMEDIATE');
      clock.save(this.#ids.position);
      db.exec('COMMIT');
      this.#savedAt = this.#ids.position.at;
      refuseWithoutDurability(db, this.#file);
      this.#open = ledger;
      return ledger;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  #disconnect(): void {
    try {
      this.#open?.db.close();
    } finally {
      this.#open = null;
    }
  }
}

/** Stands for the outcome that nearly all commands have. */
const PLAIN = 0;

/**
 * What a batch did as one text, for the way between the threads. V8 copies a text at once; it takes an object for each
 * command apart and puts it together field by field, which costs twice as much as JSON does.
 */
export function writtenText({ outcomes, latestPostings, rotations }: Written): string {
  const shortened = outcomes.map((outcome) => (outcome === ACCEPTED ? PLAIN : outcome));
  return JSON.stringify([shortened, latestPostings, rotations]);
}

export function writtenOf(text: string): Written {
  type Shortened = Outcome | null | typeof PLAIN;
  const [shortened, latestPostings, rotations] = JSON.parse(text) as [Shortened[], number[], number];
  const outcomes = shortened.map((outcome) => (outcome === PLAIN ? ACCEPTED : outcome));
  return { outcomes, latestPostings, rotations };
}
