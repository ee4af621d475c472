// The only writer of a ledger file: loads the data of a batch, decides the outcomes of its commands, appends postings
// to the journal, and commits. The writer is synchronous; `writer-thread.ts` runs the writer in its own thread.
//
//   writing ──a transaction fails──▶ closed ──next request or tick──▶ reopened, writing
//      └─────an invariant is violated──▶ halted until the process restarts, because a stopped ledger is better than a
//                                        wrong one

import type { DatabaseSync } from 'node:sqlite';
import {
  type Batch,
  batchOf,
  decideBatch,
  EVENTS_PER_BATCH_MAX,
  type LoadedBatch,
  NO_REFERENCED,
  referenceName,
} from '../../../ledger/batch.ts';
import type { Command, EndUserKey } from '../../../ledger/command.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import { NO_RECORDS } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { IdempotencyRetention } from '../../ledger-store.ts';
import { CannotOpen, StoreFault } from '../../store-fault.ts';
import { movedTo, type TestClockMove } from '../../test-clock.ts';
import type { ImportPart } from '../../tools/ledger-import.ts';
import { type IdPosition, TransactionIds } from '../../transaction-ids.ts';
import { CACHE_LIMITS, type CachedEndUser, type CacheLimits, EndUserCache } from '../balances/end-user-cache.ts';
import { hasChanged, identityOf } from '../file/file-names.ts';
import { connect, explained, refuseWithoutDurability } from '../file/ledger-file.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { RecordTable } from '../idempotency/record-table.ts';
import { type EventPart, EventWriter } from '../journal/events.ts';
import { JournalWriter } from '../journal/journal-writer.ts';
import { TotalsWriter } from '../journal/totals.ts';
import { TransactionReader } from '../journal/transaction-reader.ts';
import { advanceImport } from './import-queue.ts';
import { type LedgerClock, SavedClock } from './ledger-clock.ts';
import type { Written } from './written.ts';

/**
 * If the writer is idle, a tick flushes the balances of up to this many end users. This takes about 20 ms, and can
 * delay a new write. With 2,000 end users, it took 60 to 95 ms.
 */
const FLUSHED_WHEN_IDLE = 250;
const FLUSHED_AT_CLOSE = 10_000;

/**
 * A closing writer stops flushing pending balances after this time. After the next start, Scrip uses the journal to
 * compute the balances that are still pending.
 */
const CLOSE_MS = 1_000;

/** The page cache is small, because SQLite scans the whole cache in each COMMIT that adds pages. */
const PAGE_CACHE_KIB = 4 * 1_024;

export interface WriterOptions {
  readonly cache: CacheLimits;
  readonly indexRunMax: number;
}

/**
 * A database connection, and the objects that use it. After a failed transaction, the writer discards the connection
 * and these objects.
 */
interface OpenLedger {
  readonly db: DatabaseSync;
  readonly endUsers: EndUserCache;
  readonly journal: JournalWriter;
  readonly records: RecordTable;
  readonly transactions: TransactionReader;
  readonly totals: TotalsWriter;
  readonly events: EventWriter;
  readonly clock: SavedClock;
}

export class Writer {
  readonly #file: string;
  readonly #clock: LedgerClock;
  readonly #options: Partial<WriterOptions>;
  #open: OpenLedger | null = null;
  /** The result of `identityOf` after the file was last opened; empty before. */
  #identity: readonly string[] = [];
  #halted: StoreFault | null = null;
  /** The position never moves back, even when the file is reopened, so that no transaction ID is issued twice. */
  #ids = new TransactionIds({ at: 0, sequence: 0 });
  /** The latest instant that is saved in the file. */
  #savedAt = 0;
  #isIdle = false;

  /** @throws CannotOpen if the file cannot be opened, or if commits to the file might not be durable */
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

  /**
   * @param part the rows from which an import made `commands`; null if no import made them. The commit also records
   * these rows as imported.
   */
  write(commands: readonly Command[], part: ImportPart | null = null): Written {
    this.#isIdle = false;
    return this.#transact(({ db, endUsers, journal, records, transactions }) => {
      const now = this.#now();
      const batch = batchOf(commands);
      const cached = batch.users.map((user, index) => endUsers.load(user, batch.names[index] as string, now));
      const isKeyed = batch.recordNames.some((name) => name !== null);
      const loaded = {
        states: cached.map(({ state }) => state),
        records: isKeyed ? records.load(batch) : NO_RECORDS,
        referenced: batch.references.length === 0 ? NO_REFERENCED : referencedBy(batch, cached, transactions),
      };
      const moment = { now, recordedAt: this.#clock.machineTime(now), nextId: () => this.#ids.next() };
      const decided = decideBatch(batch, loaded, moment, EVENTS_PER_BATCH_MAX);
      const changed = decided.changes.map(({ index, user, postings, after }) => {
        const one = cached[index] as CachedEndUser;
        const latest = journal.append(user, postings, one.latestPosting, after);
        endUsers.change(one, after, postings.length, latest);
        return one;
      });
      journal.flush();
      for (const one of cached) endUsers.flushWhereDue(one);
      if (decided.records.length > 0) records.insert(decided.records);
      const isFlushed = endUsers.keepUp(changed);
      if (part !== null) advanceImport(db, part, decided.outcomes);
      const latest = cached.map(({ pendingPostings, latestPosting }) =>
        pendingPostings > 0 ? (latestPosting ?? 0) : 0,
      );
      const result = {
        outcomes: decided.outcomes,
        latestPostings: batch.userOf.map((index) => latest[index] as number),
        rotations: endUsers.takeRotations(),
      };
      return { result, isChanged: isFlushed || decided.records.length > 0 || part !== null };
    });
  }

  /** Whether the writer is idle and has pending balances, which the next tick flushes. */
  get isFlushing(): boolean {
    return this.#isIdle && (this.#open?.endUsers.hasPending ?? false);
  }

  /**
   * Call `tick` at least once a second. Saves the latest instant that a reader has seen, so that the clock does not go
   * back after a restart. Reopens the file after a fault. Stops until the process restarts if a file was deleted or
   * replaced. Flushes pending balances if no batch has been written since the last tick.
   *
   * @returns the number of flushed generations, as in `Written`
   * @throws StoreFault
   */
  tick(flushedMax = FLUSHED_WHEN_IDLE): number {
    if (this.#open !== null) this.#refuseReplacedFile();
    return this.#keepUp(flushedMax);
  }

  #refuseReplacedFile(): void {
    if (hasChanged(this.#identity, identityOf(this.#file)))
      throw this.#abandon(
        new StoreFault('Internal', `${this.#file}, its log or its lock was deleted or replaced while Scrip served it`),
      );
  }

  #keepUp(flushedMax: number): number {
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
   * Adds new postings to the totals.
   *
   * @returns whether there might be more postings to add
   * @throws StoreFault, like the methods below
   */
  updateTotals(): boolean {
    return this.#transact(({ totals }) => {
      const { isMore, isChanged } = totals.catchUp();
      return { result: isMore, isChanged };
    });
  }

  /**
   * Stores events, and advances the position in the feed.
   *
   * @returns false if nothing was stored, because the position or the event state of an end user has changed
   */
  saveEvents(part: EventPart): boolean {
    return this.#transact(({ events }) => {
      // Advance the saved clock, so that no new posting is earlier than the instant up to which events have been
      // derived.
      const now = this.#now();
      const isSaved = events.save(part, this.#clock.machineTime(now));
      return { result: isSaved, isChanged: isSaved };
    });
  }

  /** @returns whether there might be more events to delete */
  deleteExpiredEvents(retentionMs: number): boolean {
    return this.#transact(({ events }) => {
      const { deleted, isMore } = events.deleteBefore(this.#clock.machineTime(this.#clock.peek()) - retentionMs);
      return { result: isMore, isChanged: deleted > 0 };
    });
  }

  /**
   * Called every second. Does not advance the clock: otherwise, Scrip would have to save the clock every second, even
   * if the ledger is idle.
   */
  deleteExpiredRecords({ grantsMs, othersMs }: IdempotencyRetention): boolean {
    return this.#transact(({ records }) => {
      const now = this.#clock.machineTime(this.#clock.peek());
      const grants = records.sweep('grants', now - grantsMs);
      const others = records.sweep('others', now - othersMs);
      return { result: grants.isMore || others.isMore, isChanged: grants.deleted + others.deleted > 0 };
    });
  }

  recordKeyUses(ids: readonly number[]): void {
    this.#transact(({ db }) => {
      const update = 'UPDATE api_keys SET last_used_at = ? WHERE key_id IN (SELECT value FROM json_each(?))';
      db.prepare(update).run(this.#clock.machineTime(this.#now()), JSON.stringify(ids));
      return { result: undefined, isChanged: true };
    });
  }

  /**
   * Saves the new instant before any thread can see it, so that a crash does not set the clock back.
   *
   * @returns the new instant; null if the move would go back in time or beyond `LAST_INSTANT`
   */
  moveClock(move: TestClockMove): Instant | null {
    const moved = this.#transact(() => {
      const to = movedTo(this.#now(), move);
      const isLater = to !== null && to > this.#ids.position.at;
      return { result: to, isChanged: to !== null, ...(isLater ? { position: { at: to, sequence: 0 } } : {}) };
    });
    if (moved !== null) {
      // Without `moveTo`, the next transaction that issues no IDs would save the earlier position again.
      this.#ids.moveTo(moved);
      this.#clock.notBefore(moved);
    }
    return moved;
  }

  /** @throws StoreFault, for example if the disk is full; nothing is lost, because the log keeps all commits */
  close(): void {
    try {
      if (this.#halted === null) this.#flushAll();
      this.#open?.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch (error) {
      throw faultOf(error);
    } finally {
      this.#disconnect();
    }
  }

  /** Flushes pending balances for up to `CLOSE_MS`, so that the next start finds few or none. */
  #flushAll(): void {
    const began = performance.now();
    do {
      this.#isIdle = true;
      this.#keepUp(FLUSHED_AT_CLOSE);
    } while (this.#open?.endUsers.hasPending && performance.now() - began < CLOSE_MS);
  }

  /**
   * Runs `work` between BEGIN and COMMIT, or ROLLBACK if `work` changed nothing. The commit also saves the position of
   * the clock: the position that `work` returns, or by default the position of the latest transaction ID.
   */
  #transact<Result>(
    work: (ledger: OpenLedger) => { result: Result; isChanged: boolean; position?: IdPosition },
  ): Result {
    if (this.#halted) throw this.#halted;
    try {
      const ledger = this.#open ?? this.#reopen();
      ledger.db.exec('BEGIN IMMEDIATE');
      const { result, isChanged, position = this.#ids.position } = work(ledger);
      if (isChanged) this.#commit(ledger, position);
      else ledger.db.exec('ROLLBACK');
      return result;
    } catch (error) {
      throw this.#abandon(
        error instanceof CannotOpen ? new StoreFault('StoreUnavailable', error.message) : faultOf(error),
      );
    }
  }

  /**
   * Advances the clock to the current time. If at least half of the IDs of the latest instant have been issued,
   * advances the clock by a millisecond instead.
   */
  #now(): Instant {
    const { at } = this.#ids.position;
    const now = this.#ids.isRunningShort ? this.#clock.notBefore(at + 1) : this.#clock.now();
    this.#ids.moveTo(now);
    return now;
  }

  /**
   * Saves the position of the clock and commits. After a failed COMMIT, only reopening the file shows whether the
   * transaction is stored.
   */
  #commit(ledger: OpenLedger, position: IdPosition): void {
    ledger.clock.save(position);
    try {
      ledger.db.exec('COMMIT');
    } catch (error) {
      throw new StoreFault('OutcomeUnknown', (error as Error).message);
    }
    this.#savedAt = position.at;
  }

  /** Closes the connection, because it cannot be trusted after a fault. Closing rolls back all uncommitted changes. */
  #abandon(fault: StoreFault): StoreFault {
    if (fault.code === 'Internal') this.#halted = fault;
    this.#disconnect();
    return fault;
  }

  #reopen(): OpenLedger {
    // Otherwise, opening could create an empty file, and SQLite would then delete the log beside it.
    this.#refuseReplacedFile();
    const db: DatabaseSync = connect(this.#file);
    try {
      db.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
      const { cache = CACHE_LIMITS, indexRunMax } = this.#options;
      const journal = new JournalWriter(db);
      const clock = new SavedClock(db);
      const saved = clock.read(journal.latest > 0);
      this.#clock.notBefore(saved.at);
      const given = this.#ids.position;
      const isSavedLater = saved.at > given.at || (saved.at === given.at && saved.sequence > given.sequence);
      if (isSavedLater) this.#ids = new TransactionIds(saved);
      const ledger: OpenLedger = {
        db,
        endUsers: new EndUserCache(db, cache, journal.latest, this.#now()),
        journal,
        records: new RecordTable(db, indexRunMax),
        transactions: new TransactionReader(db),
        totals: new TotalsWriter(db),
        events: new EventWriter(db),
        clock,
      };
      db.exec('BEGIN IMMEDIATE');
      clock.save(this.#ids.position);
      ledger.records.catchUp();
      db.exec('COMMIT');
      this.#savedAt = this.#ids.position.at;
      refuseWithoutDurability(db, this.#file);
      this.#identity = identityOf(this.#file);
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

function referencedBy(
  { references, users }: Batch,
  cached: readonly CachedEndUser[],
  transactions: TransactionReader,
): LoadedBatch['referenced'] {
  const found = new Map<string, Referenced>();
  for (const reference of references) {
    const user = users[reference.user] as EndUserKey;
    const { latestPosting } = cached[reference.user] as CachedEndUser;
    const referenced = transactions.find(user, latestPosting, reference.transaction);
    if (referenced !== null) found.set(referenceName(reference), referenced);
  }
  return found;
}
