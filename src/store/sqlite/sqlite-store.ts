// The embedded store: one SQLite file, one writer, readers beside it. This is the adapter's front; the writer works in
// a thread of its own (`ThreadedWriter`), or in place where a test moves the clock.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { Finding } from '../../ledger/audit.ts';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import { InvalidCursor } from '../account-reads.ts';
import type { Loaded } from '../loaded.ts';
import {
  type AuditReport,
  CannotOpen,
  ONE_LANE,
  type PageRequest,
  type Store,
  StoreFault,
  type TransactionPage,
} from '../store.ts';
import { SqliteAccountReads } from './account-reads.ts';
import { SqliteApiKeys } from './api-keys.ts';
import { PlaceFinder } from './landmarks.ts';
import { LedgerClock, type WallClock } from './ledger-clock.ts';
import { checkPages, lockLedgerFile, openLedgerFile, refuseUnfinishedCopy } from './ledger-file.ts';
import { addUpAgain } from './movements.ts';
import { ChainReader, type Holdings, HoldingsReader, prepare, rowsOf } from './rows.ts';
import { faultOf } from './sqlite-error.ts';
import { transactionPage } from './transaction-page.ts';
import { uuidOf } from './uuid.ts';
import { auditFile } from './whole-store.ts';
import { Writer } from './writer.ts';
import type { WriterData, WriterMessage, WriterReply } from './writer-thread.ts';

/** Of the same kind as this file: TypeScript in the sources, JavaScript in the package. */
const WRITER_THREAD = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);

type Outcomes = readonly (Outcome | null)[];

interface BatchWriter {
  /** Called when the writer finds out by itself that it works, or no longer does. */
  onHealth: (trouble: StoreFault | null) => void;
  write(commands: readonly Command[]): Promise<Outcomes>;
  forgetAnswers(ageMs: number): Promise<number>;
  noteKeyUses(ids: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the ledger in `file` for this process alone, making it when there is none.
 *
 * @param wall a clock other than the machine's; the writer then works in the caller's thread
 * @throws CannotOpen when another process has it, or it is newer, foreign, damaged or on a disk that cannot be trusted
 */
export async function openSqliteStore(file: string, wall?: WallClock): Promise<Store> {
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true);
    checkPages(db, file);
    refuseUnfinishedCopy(db, file);
    const clock = new LedgerClock(wall ?? Date.now);
    const writer = wall ? new WriterInPlace(file, clock) : await ThreadedWriter.open(file, clock);
    return new SqliteStore(db, clock, writer, lock);
  } catch (error) {
    db?.close();
    lock.close();
    throw error;
  }
}

/**
 * Opens the ledger beside a server that may be running on it: for API keys and the audit, not for writes.
 *
 * @throws CannotOpen
 */
export function openSqliteStoreBeside(file: string, { create = true }: { create?: boolean } = {}): Store {
  if (!create && !existsSync(file)) throw new CannotOpen(`There is no ledger at ${file}; check DATABASE_URL.`);
  const refused = () => Promise.reject(new StoreFault('StoreUnavailable', 'the ledger is open for looking only'));
  const nobody: BatchWriter = {
    onHealth: () => {},
    write: refused,
    forgetAnswers: refused,
    noteKeyUses: async () => {},
    close: async () => {},
  };
  return new SqliteStore(openLedgerFile(file, false), new LedgerClock(Date.now), nobody, null);
}

class SqliteStore implements Store {
  readonly lanes = ONE_LANE;
  readonly apiKeys: SqliteApiKeys;
  readonly accountReads: SqliteAccountReads;
  readonly #db: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #writer: BatchWriter;
  readonly #lock: DatabaseSync | null;
  readonly #reader: HoldingsReader;
  readonly #chain: ChainReader;
  readonly #places: PlaceFinder;
  readonly #due: StatementSync;
  #trouble: StoreFault | null = null;
  #broken: StoreFault | null = null;

  constructor(db: DatabaseSync, clock: LedgerClock, writer: BatchWriter, lock: DatabaseSync | null) {
    this.#db = db;
    this.#clock = clock;
    this.#writer = writer;
    this.#lock = lock;
    writer.onHealth = (trouble) => {
      this.#trouble = trouble;
    };
    this.apiKeys = new SqliteApiKeys(db, clock, (ids) => writer.noteKeyUses(ids));
    this.accountReads = new SqliteAccountReads(db, clock, (read) => this.#read(read));
    this.#reader = new HoldingsReader(db);
    this.#chain = new ChainReader(db);
    this.#places = new PlaceFinder(db);
    this.#due = prepare(
      db,
      `SELECT account, end_user FROM holdings
       WHERE type = 'recurring' AND status = 'active' AND ends_at <= ? ORDER BY ends_at LIMIT ?`,
    );
  }

  async write(commands: readonly Command[]): Promise<Outcomes> {
    if (this.#broken) throw this.#broken;
    try {
      const outcomes = await this.#writer.write(commands);
      this.#trouble = null;
      return outcomes;
    } catch (error) {
      this.#trouble = faultOf(error);
      throw this.#trouble;
    }
  }

  async cycles(user: EndUserKey): Promise<Loaded> {
    return this.#read(() => this.#load(user));
  }

  /** Postings never change, and one read of the holdings says where they begin: the page is a snapshot as it is. */
  async transactions(user: EndUserKey, { from, limit, within }: PageRequest): Promise<TransactionPage> {
    return this.#read(() => {
      const { now, cycles, latestPosting } = this.#load(user);
      const first = () => (within ? this.#places.find(user, latestPosting, within.last) : latestPosting);
      const start = from === null ? first() : Number(from);
      return { now, cycles, ...transactionPage(this.#chain.from(start, user), limit, within?.first) };
    });
  }

  async renewalsDue(limit: number): Promise<readonly EndUserKey[]> {
    return this.#read(() =>
      rowsOf(this.#due, this.#clock.peek(), limit).map(([account, endUser]) => ({
        account: account as number,
        endUser: uuidOf(endUser as Uint8Array),
      })),
    );
  }

  forgetAnswers(ageMs: number): Promise<number> {
    return this.#writer.forgetAnswers(ageMs);
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditFile(this.#db, report);
  }

  async addUpTotals(): Promise<void> {
    try {
      this.#db.exec('BEGIN IMMEDIATE');
      addUpAgain(this.#db);
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw faultOf(error);
    }
  }

  trouble(): string | null {
    return (this.#broken ?? this.#trouble)?.message ?? null;
  }

  async close(): Promise<void> {
    try {
      await this.#writer.close();
    } finally {
      this.#db.close();
      this.#lock?.close();
    }
  }

  /**
   * The instant is taken after the rows are read. Taken before, it could be earlier than the batch that wrote them, and
   * a period that was renewed in between would count beside the one before it.
   */
  #load(user: EndUserKey): Loaded & Holdings {
    const holdings = this.#reader.read(user, this.#clock.now());
    return { now: this.#clock.now(), ...holdings };
  }

  /** A broken row stops the writes too: whoever finds an invariant broken stops the ledger. */
  #read<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      if (error instanceof InvalidCursor) throw error;
      const fault = faultOf(error);
      if (fault.code === 'Internal') this.#broken = fault;
      throw fault;
    }
  }
}

class WriterInPlace implements BatchWriter {
  onHealth: BatchWriter['onHealth'] = () => {};
  readonly #writer: Writer;

  constructor(file: string, clock: LedgerClock) {
    this.#writer = new Writer(file, clock);
  }

  async write(commands: readonly Command[]): Promise<Outcomes> {
    return this.#writer.write(commands);
  }

  async forgetAnswers(ageMs: number): Promise<number> {
    return this.#writer.forgetAnswers(ageMs);
  }

  async noteKeyUses(ids: readonly number[]): Promise<void> {
    this.#writer.noteKeyUses(ids);
  }

  async close(): Promise<void> {
    this.#writer.close();
  }
}

/** The writer's thread, seen from here. Batches are answered in the order in which they were sent. */
class ThreadedWriter implements BatchWriter {
  onHealth: BatchWriter['onHealth'] = () => {};
  readonly #worker: Worker;
  readonly #waiting: { resolve: (reply: WriterReply) => void; reject: (fault: StoreFault) => void }[] = [];
  #closed = false;

  static async open(file: string, clock: LedgerClock): Promise<ThreadedWriter> {
    const workerData: WriterData = { file, clock: clock.shared };
    const worker = new Worker(WRITER_THREAD, { workerData });
    const [first] = (await once(worker, 'message')) as [WriterReply];
    if (typeof first === 'object') throw new CannotOpen('reason' in first ? first.reason : 'the writer did not start');
    return new ThreadedWriter(worker);
  }

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on('message', (reply: WriterReply) => this.#take(reply));
    worker.on('error', (error) => this.#fail(String(error)));
    worker.on('exit', () => this.#fail('the writer has ended'));
  }

  async write(commands: readonly Command[]): Promise<Outcomes> {
    const reply = (await this.#ask({ commands })) as { readonly outcomes: Outcomes };
    return reply.outcomes;
  }

  async forgetAnswers(ageMs: number): Promise<number> {
    const reply = (await this.#ask({ forgetOlderThanMs: ageMs })) as { readonly forgotten: number };
    return reply.forgotten;
  }

  async noteKeyUses(ids: readonly number[]): Promise<void> {
    await this.#ask({ usedKeys: ids });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.postMessage('close' satisfies WriterMessage);
    await ended;
  }

  #ask(message: WriterMessage): Promise<WriterReply> {
    if (this.#closed) return Promise.reject(new StoreFault('Internal', 'the writer has ended'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(message);
    });
  }

  #take(reply: WriterReply): void {
    if (reply === 'open' || reply === 'closed') return;
    if ('trouble' in reply) {
      const { trouble } = reply;
      this.onHealth(trouble && new StoreFault(trouble.fault, trouble.reason));
      return;
    }
    const waiting = this.#waiting.shift();
    if ('fault' in reply) waiting?.reject(new StoreFault(reply.fault, reply.reason));
    else waiting?.resolve(reply);
  }

  /** What was under way when the thread died may or may not be in the file. */
  #fail(reason: string): void {
    if (!this.#closed) this.onHealth(new StoreFault('Internal', reason));
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(new StoreFault('OutcomeUnknown', reason));
  }
}
