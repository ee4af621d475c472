// The only writer of a ledger file: loads what a batch needs, decides it with the rules of the ledger, appends to the
// journal and commits. Synchronous; `writer-thread.ts` runs it in a thread of its own.
//
//   writing ──a transaction fails──▶ closed ──next request or tick──▶ reopened, writing
//      └─────an invariant is violated──▶ halted for good: a stopped ledger is better than a wrong one

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
import { type SummaryPart, SummaryWriter } from '../journal/summaries.ts';
import { type LedgerClock, SavedClock } from './ledger-clock.ts';

/**
 * The most renewals that one batch stores: about 10 ms of work, so that an end user with ten years of due daily
 * renewals does not delay other requests for longer.
 */
const EVENTS_PER_BATCH_MAX = 1_000;

/** End users that an idle tick flushes: about 20 ms of work, for which a new write may have to wait. */
const FLUSHED_WHEN_IDLE = 2_000;
const FLUSHED_AT_CLOSE = 10_000;

/** How long a stop may take to flush pending balances. The next start reads the remaining ones from the journal. */
const CLOSE_MS = 1_000;

/** Kept small, because SQLite scans its whole page cache in each COMMIT that adds pages. */
const PAGE_CACHE_KIB = 4 * 1_024;

export interface WriterOptions {
  readonly cache: CacheLimits;
  /** The number of idempotency records in a sorted run. */
  readonly indexRunMax: number;
}

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  /** For each command, the latest posting of its end user if it may be pending; else 0. */
  readonly latestPostings: readonly number[];
  /** The number of generations of pending balances that have been flushed since the last result. */
  readonly rotations: number;
}

/** Called with the outcomes of the batch. */
export type WriteBeside = (db: DatabaseSync, outcomes: readonly (Outcome | null)[]) => void;

/** A connection and everything that writes through it. Not used again after a failed transaction. */
interface OpenLedger {
  readonly db: DatabaseSync;
  readonly endUsers: EndUserCache;
  readonly journal: JournalWriter;
  readonly records: RecordTable;
  readonly feed: FeedWriter;
  readonly summaries: SummaryWriter;
  readonly clock: SavedClock;
}

export class Writer {
  readonly #file: string;
  readonly #clock: LedgerClock;
  readonly #options: Partial<WriterOptions>;
  #open: OpenLedger | null = null;
  #halted: StoreFault | null = null;
  /** Kept when the file is reopened: an issued id is never issued again, whether it was stored or not. */
  #ids = new TransactionIds({ at: 0, sequence: 0 });
  /** The instant that is saved in the file. */
  #savedAt = 0;
  /** Whether nothing was written since the last tick. */
  #isIdle = false;

  /** @throws CannotOpen if the file does not keep its durability settings */
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

  /** @param beside makes further writes in the same transaction */
  write(commands: readonly Command[], beside: WriteBeside | null = null): Written {
    this.#isIdle = false;
    return this.#transact(({ db, endUsers, journal, records }) => {
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
        // Flushed at once, because due renewals are looked up in the file.
        if (postings.some(({ kind }) => kind !== 'add' && kind !== 'subtract')) endUsers.flush(one);
        return one;
      });
      journal.flush();
      if (decided.records.length > 0) records.insert(decided.records);
      const isFlushed = endUsers.keepUp(changed);
      beside?.(db, decided.outcomes);
      const latest = cached.map(({ pendingPostings, latestPosting }) =>
        pendingPostings > 0 ? (latestPosting ?? 0) : 0,
      );
      const result = {
        outcomes: decided.outcomes,
        latestPostings: batch.userOf.map((index) => latest[index] as number),
        rotations: endUsers.takeRotations(),
      };
      return { result, isChanged: isFlushed || decided.records.length > 0 || beside !== null };
    });
  }

  /**
   * Called once a second. Saves the latest instant that a reader has seen, so that it still counts after a restart.
   * Reopens the file after a fault. Flushes pending balances if nothing was written since the last tick.
   *
   * @returns the number of flushed generations, as in `Written`
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
   * Stores the result of a consumer for a part of the feed, together with its position.
   *
   * @returns false if the position has changed, and nothing was stored
   * @throws StoreFault, like the methods below
   */
  saveFeedPart(part: FeedPart): boolean {
    return this.#transact(({ feed }) => {
      const isSaved = feed.save(part);
      return { result: isSaved, isChanged: isSaved };
    });
  }

  /** Stores summaries, like `saveFeedPart`. */
  saveSummaries(part: SummaryPart): boolean {
    return this.#transact(({ summaries }) => {
      // Saves the current instant as the clock of the ledger: an audit does not accept summaries from after the saved
      // instant.
      this.#now();
      const isSaved = summaries.save(part);
      return { result: isSaved, isChanged: isSaved };
    });
  }

  /**
   * Called once a second. Does not advance the clock if nothing has expired, so that nothing is written to an idle
   * ledger.
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

  /** Flushes pending balances, so that the next start finds few or none. */
  #flushAll(): void {
    const began = performance.now();
    do {
      this.#isIdle = true;
      this.tick(FLUSHED_AT_CLOSE);
    } while (this.#open?.endUsers.hasPending && performance.now() - began < CLOSE_MS);
  }

  /** Runs `work` in a transaction, which is committed if `work` changed something. */
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

  /**
   * The instant of a batch. If the clock stands still for so long that the ids run short, advances it by a millisecond.
   */
  #now(): Instant {
    const { at } = this.#ids.position;
    const now = this.#ids.isRunningShort ? this.#clock.notBefore(at + 1) : this.#clock.now();
    this.#ids.moveTo(now);
    return now;
  }

  /** Commits with the position of the clock. A failed COMMIT may have happened: only reopening the file shows it. */
  #commit(ledger: OpenLedger): void {
    ledger.clock.save(this.#ids.position);
    try {
      ledger.db.exec('COMMIT');
    } catch (error) {
      throw new StoreFault('OutcomeUnknown', (error as Error).message);
    }
    this.#savedAt = this.#ids.position.at;
  }

  /** Closes the connection, which is not trusted after a fault. This rolls back everything uncommitted. */
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
      const summaries = new SummaryWriter(db);
      const ledger: OpenLedger = { db, endUsers, journal, records, feed: new FeedWriter(db), summaries, clock };
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

/** Stands for `ACCEPTED`, the outcome of nearly all commands. */
const PLAIN = 0;

/**
 * The result of a batch as text for the other thread. V8 copies a string as a whole. It clones objects field by field,
 * which costs twice as much as JSON.
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
