// The one writer of a ledger file: loads what a batch needs, lets the ledger decide, writes and commits. Synchronous;
// `writer-thread.ts` gives it a thread of its own.
//
//   writing ──COMMIT fails──▶ closed ──next batch──▶ reopened, writing
//      └─────an invariant is broken──▶ halted, for good: a stopped ledger is better than a wrong one

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { Command, Outcome } from '../../ledger/command.ts';
import { batchOf, fold, type UserChange } from '../../ledger/fold.ts';
import type { Instant } from '../../ledger/instant.ts';
import { loadedBehind, movementsOf } from '../../ledger/movement.ts';
import { CannotOpen, StoreFault } from '../store.ts';
import { type IdPosition, TransactionIds } from '../transaction-ids.ts';
import { AnswerTable } from './answer-table.ts';
import { insertLandmark, isLandmark } from './landmarks.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { connect, explained } from './ledger-file.ts';
import { MovementWriter } from './movements.ts';
import { END_OF_TIME, type Holdings, HoldingsReader, prepare } from './rows.ts';
import { faultOf } from './sqlite-error.ts';
import { bytesOf } from './uuid.ts';

/**
 * How many missed periods one batch enters, two rows each: about 10 ms of work, so that ten years of daily periods
 * never hold up the requests beside them for longer.
 */
const PERIODS_PER_BATCH_MAX = 1_000;

const SYNCHRONOUS_FULL = 2;

export class Writer {
  readonly #file: string;
  readonly #clock: LedgerClock;
  #open: OpenWriter | null = null;
  #halted: StoreFault | null = null;
  /** Survives a reopening: what was given out once is never given out again, stored or not. */
  #ids = new TransactionIds({ at: 0, sequence: 0 });
  /** The instant that the file holds. */
  #keptAt = 0;

  /** @throws CannotOpen when the file does not keep what it is told to keep */
  constructor(file: string, clock: LedgerClock) {
    this.#file = file;
    this.#clock = clock;
    try {
      this.#reopen();
    } catch (error) {
      throw explained(file, error);
    }
  }

  /** @throws StoreFault */
  write(commands: readonly Command[]): readonly (Outcome | null)[] {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    try {
      const now = this.#tick();
      const batch = batchOf(commands);
      const behind = loadedBehind(now);
      const holdings = batch.users.map((user) => writer.reader.read(user, behind));
      const loaded = { cycles: holdings.map(({ cycles }) => cycles), answers: writer.answers.load(commands) };
      const moment = { now, nextId: () => this.#ids.next() };
      const { outcomes, changes, answers } = fold(batch, loaded, moment, PERIODS_PER_BATCH_MAX);
      if (changes.length + answers.length === 0) {
        writer.db.exec('ROLLBACK');
        return outcomes;
      }
      for (const change of changes) writer.store(change, holdings[change.index] as Holdings);
      for (const answer of answers) writer.answers.insert(answer);
      writer.movements.write(movementsOf(changes));
      writer.saveClock(this.#ids.position);
      this.#commit(writer);
      return outcomes;
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /**
   * Keeps the latest instant that a reader has seen, so that it still counts after a restart, and opens the file again
   * after a fault.
   *
   * @throws StoreFault
   */
  keepTime(): void {
    if (this.#halted) throw this.#halted;
    if (this.#open !== null && this.#clock.latest() <= this.#keptAt) return;
    const writer = this.#begin();
    this.#tick();
    try {
      writer.saveClock(this.#ids.position);
      this.#commit(writer);
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /**
   * Forgets some of the answers that are older than `ageMs`.
   *
   * @returns how many
   * @throws StoreFault
   */
  forgetAnswers(ageMs: number): number {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    try {
      const forgotten = writer.answers.forget(this.#tick() - ageMs);
      if (forgotten === 0) writer.db.exec('ROLLBACK');
      else this.#commit(writer);
      return forgotten;
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /**
   * Keeps that these API keys were used now.
   *
   * @throws StoreFault
   */
  noteKeyUses(ids: readonly number[]): void {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    try {
      writer.noteKeyUses(ids, this.#tick());
      writer.saveClock(this.#ids.position);
      this.#commit(writer);
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  close(): void {
    try {
      if (!this.#halted) this.keepTime();
      this.#open?.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      this.#disconnect();
    }
  }

  /** The instant of this batch. When the clock stands still for so long that the ids run short, it is moved on. */
  #tick(): Instant {
    const { at } = this.#ids.position;
    const now = this.#ids.isRunningShort ? this.#clock.notBefore(at + 1) : this.#clock.now();
    this.#ids.moveTo(now);
    return now;
  }

  #begin(): OpenWriter {
    try {
      const writer = this.#open ?? this.#reopen();
      writer.db.exec('BEGIN IMMEDIATE');
      return writer;
    } catch (error) {
      throw this.#abandon(
        error instanceof CannotOpen ? new StoreFault('StoreUnavailable', error.message) : faultOf(error),
      );
    }
  }

  /** A COMMIT that fails may have happened all the same: what the file holds shows only after it is opened anew. */
  #commit(writer: OpenWriter): void {
    try {
      writer.db.exec('COMMIT');
      this.#keptAt = this.#ids.position.at;
    } catch (error) {
      throw new StoreFault('OutcomeUnknown', (error as Error).message);
    }
  }

  /** After any fault the connection is not trusted any more. Closing it rolls back what was not committed. */
  #abandon(fault: StoreFault): StoreFault {
    if (fault.code === 'Internal') this.#halted = fault;
    this.#disconnect();
    return fault;
  }

  #reopen(): OpenWriter {
    const db = connect(this.#file);
    try {
      const writer = new OpenWriter(db);
      const kept = writer.readClock();
      this.#clock.notBefore(kept.at);
      const given = this.#ids.position;
      const isKeptLater = kept.at > given.at || (kept.at === given.at && kept.sequence > given.sequence);
      if (isKeptLater) this.#ids = new TransactionIds(kept);
      this.#tick();
      db.exec('BEGIN IMMEDIATE');
      writer.saveClock(this.#ids.position);
      db.exec('COMMIT');
      this.#keptAt = this.#ids.position.at;
      refuseWithoutDurability(db, this.#file);
      this.#open = writer;
      return writer;
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

/** A connection with its statements. */
class OpenWriter {
  readonly db: DatabaseSync;
  readonly reader: HoldingsReader;
  readonly answers: AnswerTable;
  readonly movements: MovementWriter;
  readonly #insertCycle: StatementSync;
  readonly #setRemaining: StatementSync;
  readonly #setStatus: StatementSync;
  readonly #insertEndUser: StatementSync;
  readonly #setLatestPosting: StatementSync;
  readonly #insertPosting: StatementSync;
  readonly #insertLandmark: StatementSync;
  readonly #saveClock: StatementSync;
  readonly #noteKeyUses: StatementSync;
  #lastPosting: number;

  constructor(db: DatabaseSync) {
    this.db = db;
    this.reader = new HoldingsReader(db);
    this.answers = new AnswerTable(db);
    this.movements = new MovementWriter(db);
    this.#insertCycle = prepare(
      db,
      `INSERT INTO holdings (account, end_user, cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    // Two statements: naming `status` would touch the two indexes of active cycles each time credits are spent.
    const one = 'WHERE account = ? AND end_user = ? AND ends_at = ? AND cycle_id = ?';
    this.#setRemaining = prepare(db, `UPDATE holdings SET remaining = ? ${one}`);
    this.#setStatus = prepare(db, `UPDATE holdings SET remaining = ?, status = ? ${one}`);
    const endUser = `${END_OF_TIME}, x'', 'end-user'`;
    this.#insertEndUser = prepare(
      db,
      `INSERT INTO holdings (latest_posting, posting_count, account, end_user, ends_at, cycle_id, type)
       VALUES (?, ?, ?, ?, ${endUser})`,
    );
    this.#setLatestPosting = prepare(
      db,
      `UPDATE holdings SET latest_posting = ?, posting_count = ?
       WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`,
    );
    this.#insertPosting = prepare(
      db,
      `INSERT INTO postings (posting, previous, account, end_user, transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor, note)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertLandmark = insertLandmark(db);
    this.#saveClock = prepare(db, 'REPLACE INTO clock (only, at, sequence, checksum) VALUES (1, ?, ?, ?)');
    this.#noteKeyUses = prepare(
      db,
      'UPDATE api_keys SET last_used_at = ? WHERE key_id IN (SELECT value FROM json_each(?))',
    );
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
  }

  /** @param loaded what the end user had: the first new posting follows its latest one */
  store(change: UserChange, loaded: Holdings): void {
    const endUser = bytesOf(change.user.endUser);
    this.#storeCycles(change, endUser);
    this.#storePostings(change, endUser, loaded);
  }

  /** Changes before openings: a renewed period makes room in the index of active cycles for the next one. */
  #storeCycles({ user: { account }, opened, changed }: UserChange, endUser: Uint8Array): void {
    for (const { before, after } of changed) {
      const key = [account, endUser, after.end, bytesOf(after.id)] as const;
      const { changes } =
        before.status === after.status
          ? this.#setRemaining.run(after.remaining, ...key)
          : this.#setStatus.run(after.remaining, after.status, ...key);
      assert(changes === 1, 'a cycle that was loaded is there to be changed');
    }
    for (const { id, period, type, status, amount, remaining, start, end, validityDays } of opened) {
      this.#insertCycle.run(
        account,
        endUser,
        bytesOf(id),
        period,
        type,
        status,
        amount,
        remaining,
        start,
        end,
        validityDays,
      );
    }
  }

  #storePostings({ user: { account }, postings }: UserChange, endUser: Uint8Array, loaded: Holdings): void {
    let previous = loaded.latestPosting;
    let place = loaded.postingCount;
    for (const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } of postings) {
      const number = ++this.#lastPosting;
      const ids = [bytesOf(transactionId), bytesOf(cycleId)] as const;
      this.#insertPosting.run(
        number,
        previous,
        account,
        endUser,
        ...ids,
        period,
        kind,
        amount,
        createdAt,
        expiresAt,
        actor,
        note,
      );
      this.movements.noteActivity(account, number);
      previous = number;
      place += 1;
      if (isLandmark(place)) this.#insertLandmark.run(account, endUser, ids[0], number);
    }
    const write = loaded.latestPosting === null ? this.#insertEndUser : this.#setLatestPosting;
    const { changes } = write.run(previous, place, account, endUser);
    assert(changes === 1, 'an end user has one row of its own');
  }

  saveClock({ at, sequence }: IdPosition): void {
    this.#saveClock.run(at, sequence, clockChecksum(at, sequence));
  }

  noteKeyUses(ids: readonly number[], at: Instant): void {
    this.#noteKeyUses.run(at, JSON.stringify(ids));
  }

  readClock(): IdPosition {
    const row = this.db.prepare('SELECT at, sequence, checksum FROM clock').get();
    if (row === undefined) {
      if (this.#lastPosting > 0) throw new CannotOpen('The ledger has lost its clock; restore a backup.');
      return { at: 0, sequence: 0 };
    }
    const kept = { at: Number(row.at), sequence: Number(row.sequence) };
    if (row.checksum !== clockChecksum(kept.at, kept.sequence)) {
      throw new CannotOpen(
        'The clock of the ledger was changed by other means than Scrip; run `scrip verify` and restore a backup.',
      );
    }
    return kept;
  }
}

export function clockChecksum(at: Instant, sequence: number): number {
  return crc32(`${at}/${sequence}`);
}

/** Reads back, after a first commit, what durability rests on: some builds of SQLite change it in passing. */
function refuseWithoutDurability(db: DatabaseSync, file: string): void {
  const synchronous = db.prepare('PRAGMA synchronous').get()?.synchronous;
  const journal = db.prepare('PRAGMA journal_mode').get()?.journal_mode;
  if (synchronous !== SYNCHRONOUS_FULL || journal !== 'wal') {
    throw new CannotOpen(
      `${file} cannot promise durability (synchronous ${synchronous}, journal ${journal}); put it on a local disk.`,
    );
  }
}
