// The one writer of a ledger file: loads what a batch needs, lets the ledger decide, writes and commits. Synchronous;
// `writer-thread.ts` gives it a thread of its own.
//
//   writing ──COMMIT fails──▶ closed ──next batch──▶ reopened, writing
//      └─────an invariant is broken──▶ halted, for good: a stopped ledger is better than a wrong one

import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import { batchOf, fold, foldRenewals } from '../../ledger/fold.ts';
import type { Instant } from '../../ledger/instant.ts';
import { loadedBehind } from '../../ledger/movement.ts';
import { CannotOpen, StoreFault } from '../store.ts';
import { TransactionIds } from '../transaction-ids.ts';
import { ANSWER_LIMITS, type AnswerLimits } from './answer-index.ts';
import { RENEWAL_SLICE, type RenewalSlice } from './due-renewals.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { connect, explained, refuseWithoutDurability } from './ledger-file.ts';
import { OpenWriter } from './open-writer.ts';
import { faultOf } from './sqlite-error.ts';
import { POSTING_LIMITS, type PostingLimits } from './unposted.ts';

/**
 * How many missed periods one batch enters, two rows each: about 10 ms of work, so that ten years of daily periods
 * never hold up the requests beside them for longer.
 */
const PERIODS_PER_BATCH_MAX = 1_000;

/** About 20 ms of work, which somebody who comes in the middle of it waits for. */
const POSTED_WHEN_IDLE = 2_000;
const POSTED_AT_CLOSE = 10_000;

/** Whoever stops a server waits for it; what is left then is found in the journal by the next one. */
const CLOSE_MS = 1_000;

export interface WriterOptions {
  /** Whether it keeps the chains of end users. */
  readonly isChained: boolean;
  readonly limits: PostingLimits;
  readonly answerLimits: AnswerLimits;
}

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  /** For each command, the latest posting of its end user when it waits to be posted; else 0. */
  readonly heads: readonly number[];
  /** The end users that have been posted. */
  readonly posted: readonly EndUserKey[];
}

export class Writer {
  readonly #file: string;
  readonly #isChained: boolean;
  readonly #clock: LedgerClock;
  readonly #limits: PostingLimits;
  readonly #answerLimits: AnswerLimits;
  #open: OpenWriter | null = null;
  #halted: StoreFault | null = null;
  /** Survives a reopening: what was given out once is never given out again, stored or not. */
  #ids = new TransactionIds({ at: 0, sequence: 0 });
  /** The instant that the file holds. */
  #keptAt = 0;
  /** Whether nothing was written since the last tick. */
  #isIdle = false;
  /** End users that are renewed by the transaction which `renew` has left open; null when there is none. */
  #renewing: number | null = null;
  /** End users whose renewals were committed, since `takeRenewed`. */
  #renewed = 0;

  /** @throws CannotOpen when the file does not keep what it is told to keep */
  constructor(
    file: string,
    clock: LedgerClock,
    { isChained = true, limits = POSTING_LIMITS, answerLimits = ANSWER_LIMITS }: Partial<WriterOptions> = {},
  ) {
    this.#file = file;
    this.#isChained = isChained;
    this.#clock = clock;
    this.#limits = limits;
    this.#answerLimits = answerLimits;
    try {
      this.#reopen();
    } catch (error) {
      throw explained(file, error);
    }
  }

  /** @throws StoreFault */
  write(commands: readonly Command[]): Written {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    this.#isIdle = false;
    try {
      const { unposted } = writer;
      const now = this.#moment();
      const batch = batchOf(commands);
      const behind = loadedBehind(now);
      const users = batch.users.map((user) => unposted.load(user, behind));
      const loaded = { cycles: users.map(({ holdings }) => holdings.cycles), answers: writer.answers.load(commands) };
      const moment = { now, nextId: () => this.#ids.next() };
      const { outcomes, changes, answers } = fold(batch, loaded, moment, PERIODS_PER_BATCH_MAX);
      const standing = writer.storeAll(changes, users, this.#isChained);
      writer.answers.insert(answers, ({ index }) => standing[batch.userOf[index] as number]?.latestPosting ?? null);
      unposted.keepUp(commands.length);
      this.#finish(writer, changes.length + answers.length > 0 || unposted.hasPosted);
      const heads = standing.map(({ slot }) => unposted.headOf(slot));
      return { outcomes, heads: batch.userOf.map((index) => heads[index] as number), posted: unposted.takePosted() };
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /**
   * Enters some of the renewals that are due, and leaves the transaction open: whoever writes next commits them with its
   * own, and else `saveRenewals` does. Nobody waits for a renewal to be durable.
   *
   * @throws StoreFault
   */
  renew(): RenewalSlice {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    this.#isIdle = false;
    try {
      const now = this.#moment();
      const { users, loaded } = writer.due.load(now, loadedBehind(now), writer.unposted);
      const holdings = loaded.map((each) => each.holdings);
      const { changes, settled, entered } = foldRenewals(users, holdings, now, RENEWAL_SLICE.periodsMax);
      writer.storeAll(changes, loaded, this.#isChained);
      writer.unposted.keepUp(settled);
      if (this.#renewing === null && entered === 0 && !writer.unposted.hasPosted) writer.db.exec('ROLLBACK');
      else this.#renewing = (this.#renewing ?? 0) + settled;
      return { endUsers: settled, periods: entered };
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /**
   * Commits the renewals that nobody has committed with their own.
   *
   * @returns the end users that were posted
   * @throws StoreFault
   */
  saveRenewals(): readonly EndUserKey[] {
    const writer = this.#open;
    if (writer === null || this.#renewing === null) return [];
    try {
      this.#save(writer);
      return writer.unposted.takePosted();
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  /** How many end users' renewals have been committed since this was asked last. */
  takeRenewed(): number {
    const renewed = this.#renewed;
    this.#renewed = 0;
    return renewed;
  }

  /**
   * Called now and then. Keeps the latest instant that a reader has seen, so that it still counts after a restart, opens
   * the file again after a fault, and posts what waits when nobody has written since the last time.
   *
   * @returns the end users that were posted
   * @throws StoreFault
   */
  tick(usersMax = POSTED_WHEN_IDLE): readonly EndUserKey[] {
    if (this.#halted) throw this.#halted;
    const isIdle = this.#isIdle;
    this.#isIdle = true;
    const isKept = this.#open !== null && this.#clock.latest() <= this.#keptAt;
    if (isKept && !(isIdle && this.#open?.unposted.isWaited)) return [];
    const writer = this.#begin();
    this.#moment();
    try {
      if (isIdle) writer.unposted.post(usersMax);
      this.#save(writer);
      return writer.unposted.takePosted();
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
  deleteExpiredRecords(ageMs: number): number {
    if (this.#halted) throw this.#halted;
    const writer = this.#begin();
    try {
      const { answers, isChanged } = writer.answers.forget(this.#moment() - ageMs);
      this.#finish(writer, isChanged);
      return answers;
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
      writer.noteKeyUses(ids, this.#moment());
      this.#save(writer);
    } catch (error) {
      throw this.#abandon(faultOf(error));
    }
  }

  close(): void {
    try {
      if (!this.#halted) {
        this.saveRenewals();
        this.#postAll();
      }
      this.#open?.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      this.#disconnect();
    }
  }

  /** Whoever opens the file next finds the holdings as they are, or nearly so. */
  #postAll(): void {
    const began = performance.now();
    do {
      this.#isIdle = true;
      this.tick(POSTED_AT_CLOSE);
    } while (this.#open?.unposted.isWaited && performance.now() - began < CLOSE_MS);
  }

  /** The instant of this batch. When the clock stands still for so long that the ids run short, it is moved on. */
  #moment(): Instant {
    const { at } = this.#ids.position;
    const now = this.#ids.isRunningShort ? this.#clock.notBefore(at + 1) : this.#clock.now();
    this.#ids.moveTo(now);
    return now;
  }

  #begin(): OpenWriter {
    try {
      const writer = this.#open ?? this.#reopen();
      // One that renewals have left open goes on.
      if (this.#renewing === null) writer.db.exec('BEGIN IMMEDIATE');
      return writer;
    } catch (error) {
      throw this.#abandon(
        error instanceof CannotOpen ? new StoreFault('StoreUnavailable', error.message) : faultOf(error),
      );
    }
  }

  /** Commits what has changed, and the renewals that were entered before. */
  #finish(writer: OpenWriter, isChanged: boolean): void {
    if (isChanged || this.#renewing !== null) this.#save(writer);
    else writer.db.exec('ROLLBACK');
  }

  /** Commits, and with it the position of the clock. */
  #save(writer: OpenWriter): void {
    writer.saveClock(this.#ids.position);
    this.#commit(writer);
  }

  /** A COMMIT that fails may have happened all the same: what the file holds shows only after it is opened anew. */
  #commit(writer: OpenWriter): void {
    try {
      writer.db.exec('COMMIT');
      this.#keptAt = this.#ids.position.at;
      this.#renewed += this.#renewing ?? 0;
      this.#renewing = null;
    } catch (error) {
      throw new StoreFault('OutcomeUnknown', (error as Error).message);
    }
  }

  /** After any fault the connection is not trusted any more. Closing it rolls back what was not committed. */
  #abandon(fault: StoreFault): StoreFault {
    if (fault.code === 'Internal') this.#halted = fault;
    this.#renewing = null;
    this.#disconnect();
    return fault;
  }

  #reopen(): OpenWriter {
    const db = connect(this.#file);
    try {
      const writer = new OpenWriter(db, this.#limits, this.#answerLimits);
      const kept = writer.readClock();
      this.#clock.notBefore(kept.at);
      const given = this.#ids.position;
      const isKeptLater = kept.at > given.at || (kept.at === given.at && kept.sequence > given.sequence);
      if (isKeptLater) this.#ids = new TransactionIds(kept);
      this.#moment();
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
