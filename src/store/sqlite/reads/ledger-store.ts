// Serves a ledger file: sends writes to the writer, and reads through a separate connection. Tracks the batches in
// flight, and the pending postings, which the stored balances do not include yet.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { type Command, type EndUserKey, isSameEndUser, type Outcome } from '../../../ledger/command.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import { POINTS_MAX } from '../../../ledger/history.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { isSettled } from '../../../ledger/next-event.ts';
import { sizeOf } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { assertLimit } from '../../console-store.ts';
import type {
  IdempotencyRetention,
  Lanes,
  LedgerStore,
  PageRequest,
  StatesAt,
  TransactionPage,
} from '../../ledger-store.ts';
import type { LoadedEndUser } from '../../loaded-end-user.ts';
import { InvalidCursor, StoreFault } from '../../store-fault.ts';
import { type ImportGranter, type ImportPart, settling } from '../../tools/ledger-import.ts';
import type { HistoryPage, HistoryRequest } from '../../transaction-history.ts';
import { EndUserReader } from '../balances/end-user-reader.ts';
import { type PendingPostings, pendingPostingsOf } from '../balances/pending-postings.ts';
import { RecentReads } from '../balances/recent-reads.ts';
import { faultOf } from '../file/sqlite-error.ts';
import { prepare, readTogether, type Statement } from '../file/statements.ts';
import { uuidOf } from '../file/uuid.ts';
import { PastStates } from '../journal/past-states.ts';
import { PostingReader } from '../journal/posting-reader.ts';
import { SnapshotReader } from '../journal/snapshots.ts';
import { TOTALS } from '../journal/totals.ts';
import { TransactionReader } from '../journal/transaction-reader.ts';
import { ImportQueue } from '../writer/import-queue.ts';
import type { LedgerClock } from '../writer/ledger-clock.ts';
import type { LedgerWriter } from '../writer/ledger-writer.ts';
import type { Written } from '../writer/written.ts';
import { HistoryPages } from './history-pages.ts';
import { transactionPage } from './transaction-page.ts';

/**
 * A turn of the event loop starts no further reads after it has read this many cycles and holds. Reading them takes
 * about 5 ms. Most end users have only a few cycles.
 */
export const CYCLES_PER_TURN_MAX = 4_096;

/** A batch that the writer has not answered yet, or whose outcome is unknown. Reads might not show its effects yet. */
interface BatchInFlight {
  readonly commands: readonly Command[];
  /** Resolved when the batch ends or its outcome becomes unknown; null unless a read waits for the batch. */
  ended: PromiseWithResolvers<void> | null;
  isOutcomeUnknown: boolean;
}

/** @returns the cost of the read, relative to the cost of reading one cycle */
type QueuedRead = () => number;

export class SqliteLedgerStore implements LedgerStore, ImportGranter {
  readonly lanes: Lanes = { count: 1, atOnce: 1, of: () => 0 };
  readonly quietPauseMs = 0;
  readonly db: DatabaseSync;
  readonly clock: LedgerClock;
  readonly writer: LedgerWriter;
  readonly postings: PostingReader;
  readonly #snapshots: SnapshotReader;
  readonly #transactions: TransactionReader;
  readonly #historyPages: HistoryPages;
  readonly #pastStates: PastStates;
  /** The connections that `close` closes after `db`, in this order. */
  readonly #others: readonly DatabaseSync[];
  readonly #due: Statement;
  readonly #uncounted: Statement;
  readonly #imports: ImportQueue;
  #endUsers: EndUserReader;
  #pending: PendingPostings;
  #recent = new RecentReads();
  /** Whether `#pending` can lack postings of a batch with an unknown outcome. */
  #isPendingUnknown = false;
  /** At most two group-commit batches and one import batch, plus batches with an unknown outcome. */
  readonly #inFlight = new Set<BatchInFlight>();
  readonly #queue: QueuedRead[] = [];
  #isReadScheduled = false;
  #trouble: StoreFault | null = null;
  /** The invariant violation that a read has found, or null. After a violation, `write` fails. */
  #broken: StoreFault | null = null;

  constructor(
    db: DatabaseSync,
    clock: LedgerClock,
    pending: PendingPostings,
    writer: LedgerWriter,
    others: readonly DatabaseSync[],
  ) {
    this.db = db;
    this.clock = clock;
    this.writer = writer;
    this.#others = others;
    this.#pending = pending;
    this.#endUsers = new EndUserReader(db);
    this.postings = new PostingReader(db);
    this.#snapshots = new SnapshotReader(db);
    this.#transactions = new TransactionReader(db);
    this.#historyPages = new HistoryPages(this.postings, this.#snapshots, this.#transactions);
    this.#pastStates = new PastStates(this.postings, this.#snapshots);
    this.#due = prepare(db, 'SELECT account, end_user FROM balances WHERE due_at <= ? ORDER BY due_at LIMIT ?');
    this.#imports = new ImportQueue(db);
    this.#uncounted = prepare(
      db,
      `SELECT 1 FROM postings WHERE posting > coalesce((SELECT posting FROM feed_positions WHERE consumer = ?), 0) LIMIT 1`,
    );
  }

  async write(
    commands: readonly Command[],
    onDecided: () => void,
    part: ImportPart | null = null,
  ): Promise<readonly (Outcome | null)[]> {
    if (this.#broken) throw this.#broken;
    const batch: BatchInFlight = { commands, ended: null, isOutcomeUnknown: false };
    this.#inFlight.add(batch);
    try {
      const writing = this.writer.call('write', commands, part);
      // The writer handles its calls in order, so the next batch can be sent now.
      onDecided();
      const written = await writing;
      this.#noteWritten(commands, written);
      this.#end(batch);
      return written.outcomes;
    } catch (error) {
      const fault = faultOf(error);
      this.#trouble = fault;
      if (fault.code === 'OutcomeUnknown') {
        batch.isOutcomeUnknown = true;
        batch.ended?.resolve();
      } else this.#end(batch);
      throw fault;
    }
  }

  async grantNext(): Promise<boolean> {
    const batch = this.attempt(() => this.#imports.next(this.clock.machineTime(this.clock.peek())));
    if (batch === null) return false;
    while ((await this.write(settling(batch.commands), () => {})).includes(null));
    await this.write(batch.commands, () => {}, batch.part);
    return true;
  }

  load(user: EndUserKey): Promise<LoadedEndUser> {
    return this.enqueue(user, () => this.read(user));
  }

  /**
   * Postings never change, so the page and the state are consistent even if they are read in different turns of the
   * event loop.
   */
  async transactions(user: EndUserKey, { from, limit, within }: PageRequest): Promise<TransactionPage> {
    const { now, state, reading, step } = await this.enqueue(user, () => {
      const { now, state, latestPosting } = this.read(user);
      const start = from === null ? this.#snapshots.postingOf(user, latestPosting, within.last) : Number(from);
      const reading = transactionPage(this.postings.backwards(start, user), limit, within.first);
      return { now, state, reading, step: reading.next() };
    });
    const page = step.done ? step.value : await this.#inTurns(reading);
    return { now, state, ...page };
  }

  history(user: EndUserKey, request: HistoryRequest): Promise<HistoryPage> {
    assertLimit(request.limit);
    return this.enqueue(user, () => {
      const { now, state, latestPosting } = this.read(user);
      return { now, state, ...this.#historyPages.page(user, latestPosting, request) };
    });
  }

  /**
   * Waits for the end user's batches in flight, because they can write postings that are earlier than some of
   * `instants`.
   */
  async statesAt(user: EndUserKey, instants: readonly Instant[]): Promise<StatesAt> {
    assert(instants.length <= POINTS_MAX, 'at most a thousand instants are requested');
    // Advance the clock: all later batches then have the current instant or a later one.
    this.clock.now();
    for (const batch of this.#writesOf(user)) await answered(batch);
    const { now, state, latestPosting } = await this.enqueue(user, () => this.read(user));
    const past = instants.filter((at) => at < now);
    const states = past.length === 0 ? [] : await this.#inTurns(this.#pastStates.at(user, latestPosting, past));
    return { now, states: instants.map((_, index) => states[index] ?? state) };
  }

  async find(user: EndUserKey, id: TransactionId): Promise<Referenced | null> {
    return this.attempt(() => {
      const latest = this.#endUsers.latestPosting(user, this.#pending.get(user));
      return this.#transactions.find(user, latest, id);
    });
  }

  async due(limit: number): Promise<readonly EndUserKey[]> {
    return this.attempt(() =>
      this.#due.all(this.clock.peek(), limit).map(([account, endUser]) => ({
        account: account as number,
        endUser: uuidOf(endUser as Uint8Array),
      })),
    );
  }

  async updateTotals(): Promise<boolean> {
    const hasNew = this.attempt(() => this.#uncounted.get(TOTALS) !== undefined);
    return hasNew && this.writer.call('updateTotals');
  }

  deleteExpiredRecords(retention: IdempotencyRetention): Promise<boolean> {
    return this.writer.call('deleteExpiredRecords', retention);
  }

  unreachable(): readonly string[] {
    return [];
  }

  trouble(): string | null {
    return (this.#broken ?? this.#trouble)?.message ?? null;
  }

  async close(): Promise<void> {
    try {
      await this.writer.close();
    } finally {
      this.db.close();
      for (const other of this.#others) other.close();
    }
  }

  /**
   * Called with a fault when the writer fails, and with null when the writer works again. After a failure, the journal
   * can contain postings that the writer never reported, so the pending postings are read from the journal again.
   */
  onTrouble(trouble: StoreFault | null): void {
    this.#trouble = trouble;
    if (trouble !== null) return;
    this.#isPendingUnknown = true;
    try {
      this.#readPending();
    } catch {
      // The next read tries again, and reports the error if it fails too.
    }
  }

  onRotations(count: number): void {
    for (let rotation = 0; rotation < count; rotation++) this.#pending.rotate();
  }

  /**
   * Queues a read of one end user. Reads in the same turn of the event loop run together and share a snapshot. Their
   * responses are sent together, which halves the kernel's cost of waking clients. If a read would show a due event
   * that is not stored yet, such as a renewal, the read first waits for the end user's writes in flight, because those
   * writes can be earlier than the event.
   *
   * @throws any error of `read`; StoreFault if the result would show a due event, and the outcome of a write of the end
   * user is unknown
   */
  enqueue<Result extends LoadedEndUser>(user: EndUserKey, read: () => Result): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const queued = () => {
      try {
        const result = this.attempt(read);
        const { state, now } = result;
        const [writing] = this.#inFlight.size === 0 || isSettled(state, now) ? [] : this.#writesOf(user);
        if (writing === undefined) resolve(result);
        else answered(writing).then(() => this.#schedule(queued), reject);
        return sizeOf(state);
      } catch (error) {
        reject(error);
        return 0;
      }
    };
    this.#schedule(queued);
    return promise;
  }

  /**
   * Reads the clock again after the rows, because the rows can contain a renewal that was stored after the clock was
   * first read. At the earlier instant, the previous period might not have ended yet, so the balance would include the
   * credits of both the previous and the new period.
   */
  read(user: EndUserKey): LoadedEndUser & { latestPosting: number | null } {
    const before = this.clock.now();
    const { state, latestPosting } = this.#recent.balancesOf(user, before, () =>
      this.#endUsers.read(user, this.#pending.get(user), before),
    );
    return { now: this.clock.now(), state, latestPosting };
  }

  /**
   * Waits for all batches in flight, and returns the instant at which the wait began. The journal then contains all
   * postings before this instant, except those of due events that are not stored yet.
   *
   * @throws StoreFault if the outcome of a write is unknown
   */
  async passedInstant(): Promise<Instant> {
    const now = this.clock.now();
    for (const batch of [...this.#inFlight]) await answered(batch);
    return now;
  }

  /** Runs a read. If the read finds an invariant violation, `write` fails from then on. */
  attempt<Result>(read: () => Result): Result {
    try {
      if (this.#isPendingUnknown && this.#trouble === null) this.#readPending();
      return read();
    } catch (error) {
      if (error instanceof InvalidCursor) throw error;
      const fault = faultOf(error);
      if (fault.code === 'Internal') this.#broken = fault;
      throw fault;
    }
  }

  #readPending(): void {
    this.#pending = pendingPostingsOf(this.db);
    this.#endUsers = new EndUserReader(this.db);
    this.#recent = new RecentReads();
    this.#isPendingUnknown = false;
    for (const batch of this.#inFlight) if (batch.isOutcomeUnknown) this.#end(batch);
  }

  #noteWritten(commands: readonly Command[], { latestPostings, rotations }: Written): void {
    if (this.#trouble !== null) this.onTrouble(null);
    this.onRotations(rotations);
    commands.forEach((command, index) => {
      const latest = latestPostings[index] as number;
      if (latest > 0) this.#pending.set(command, latest);
      this.#recent.drop(command);
    });
  }

  /** Runs a long read in several turns of the event loop. Each step of `reading` yields its cost; see `QueuedRead`. */
  #inTurns<Result>(reading: Generator<number, Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const queued = () => {
      try {
        const step = this.attempt(() => reading.next());
        if (step.done) resolve(step.value);
        else this.#schedule(queued);
        return step.done ? 0 : step.value;
      } catch (error) {
        reject(error);
        return 0;
      }
    };
    this.#schedule(queued);
    return promise;
  }

  /** Call this when reads show the effects of the batch, or when it is certain that the batch has no effects. */
  #end(batch: BatchInFlight): void {
    this.#inFlight.delete(batch);
    batch.ended?.resolve();
  }

  #writesOf(user: EndUserKey): BatchInFlight[] {
    return [...this.#inFlight].filter(({ commands }) => commands.some((command) => isSameEndUser(command, user)));
  }

  #schedule(...reads: readonly QueuedRead[]): void {
    this.#queue.push(...reads);
    if (this.#isReadScheduled || this.#queue.length === 0) return;
    this.#isReadScheduled = true;
    setImmediate(() => {
      this.#isReadScheduled = false;
      this.#readSome();
    });
  }

  #readSome(): void {
    let cycles = 0;
    let done = 0;
    readTogether(this.db, () => {
      while (done < this.#queue.length && cycles < CYCLES_PER_TURN_MAX) cycles += (this.#queue[done++] as QueuedRead)();
    });
    this.#queue.splice(0, done);
    this.#schedule();
  }
}

/**
 * Waits for the end of the batch.
 *
 * @throws StoreFault (rejects) if the outcome of the batch is unknown or becomes unknown
 */
async function answered(batch: BatchInFlight): Promise<void> {
  if (!batch.isOutcomeUnknown) {
    batch.ended ??= Promise.withResolvers();
    await batch.ended.promise;
  }
  if (batch.isOutcomeUnknown)
    throw new StoreFault('StoreUnavailable', 'the outcome of a write for this end user is not known yet');
}
