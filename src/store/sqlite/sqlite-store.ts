// The embedded store: one SQLite file, one writer, readers beside it. This is the adapter's front: what it reads of an end
// user is what is stored and what the journal says since.

import { existsSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Finding } from '../../ledger/audit.ts';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { InvalidCursor } from '../account-reads.ts';
import type { LedgerProof } from '../ledger-digest.ts';
import type { Loaded } from '../loaded.ts';
import {
  type AuditReport,
  CannotOpen,
  ONE_LANE,
  type PageRequest,
  type RenewedSome,
  type Store,
  StoreFault,
  type TransactionPage,
} from '../store.ts';
import { SqliteAccountReads } from './account-reads.ts';
import { SqliteApiKeys } from './api-keys.ts';
import { type BatchWriter, ThreadedWriter, WriterInPlace } from './batch-writer.ts';
import { Heads, headsOf } from './heads.ts';
import { JournalReader } from './journal.ts';
import { PlaceFinder } from './landmarks.ts';
import { LedgerClock, type WallClock } from './ledger-clock.ts';
import { checkPages, explained, lockLedgerFile, openLedgerFile, refuseUnfinishedCopy } from './ledger-file.ts';
import { addUpAgain } from './movements.ts';
import { addChainsTo, proveFile } from './proving.ts';
import { ReadsInTurn } from './reads-in-turn.ts';
import { type Holdings, PostingsReader, prepare, rowsOf } from './rows.ts';
import { faultOf } from './sqlite-error.ts';
import { transactionPage } from './transaction-page.ts';
import { beginToWrite } from './turn-to-write.ts';
import { hideUnposted, showUnposted } from './unposted-view.ts';
import { uuidOf } from './uuid.ts';
import { auditFile } from './whole-store.ts';
import type { WriterOptions, Written } from './writer.ts';
import { WritesUnderWay } from './writes-under-way.ts';

/**
 * Opens the ledger in `file` for this process alone, making it when there is none.
 *
 * @param wall a clock other than the machine's; the writer then works in the caller's thread
 * @param options chains are kept unless it says otherwise
 * @throws CannotOpen when another process has it, or it is newer, foreign, damaged or on a disk that cannot be trusted
 */
export async function openSqliteStore(
  file: string,
  wall?: WallClock,
  options: Partial<WriterOptions> = {},
): Promise<Store> {
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true);
    checkPages(db, file);
    refuseUnfinishedCopy(db, file);
    const clock = new LedgerClock(wall ?? Date.now);
    const writer = wall ? new WriterInPlace(file, clock, options) : await ThreadedWriter.open(file, clock, options);
    return new SqliteStore(db, clock, writer, headsOf(db), lock);
  } catch (error) {
    db?.close();
    lock.close();
    throw explained(file, error);
  }
}

/**
 * Opens the ledger beside a server that may be running on it: for API keys, the audit and proofs. It neither writes, nor
 * reads single end users: what waits to be posted is known to the server.
 *
 * @throws CannotOpen
 */
export function openSqliteStoreBeside(file: string, { create = true }: { create?: boolean } = {}): Store {
  if (!create && !existsSync(file)) throw new CannotOpen(`There is no ledger at ${file}; check DATABASE_URL.`);
  const refused = () => Promise.reject(new StoreFault('StoreUnavailable', 'the ledger is open for looking only'));
  const nobody: BatchWriter = {
    onHealth: () => {},
    onPosted: () => {},
    write: refused,
    renewDue: refused,
    deleteExpiredRecords: refused,
    noteKeyUses: async () => {},
    close: async () => {},
  };
  return new SqliteStore(openLedgerFile(file, false), new LedgerClock(Date.now), nobody, new Heads(), null);
}

class SqliteStore implements Store {
  readonly lanes = ONE_LANE;
  readonly apiKeys: SqliteApiKeys;
  readonly accountReads: SqliteAccountReads;
  readonly #db: DatabaseSync;
  readonly #clock: LedgerClock;
  readonly #writer: BatchWriter;
  readonly #lock: DatabaseSync | null;
  readonly #journal: JournalReader;
  readonly #chain: PostingsReader;
  readonly #places: PlaceFinder;
  readonly #due: StatementSync;
  /** Of the end users that wait to be posted. */
  #heads: Heads;
  readonly #writes = new WritesUnderWay();
  readonly #reads: ReadsInTurn;
  /** How often it was asked to renew, and has not answered. */
  #renewing = 0;
  #trouble: StoreFault | null = null;
  #broken: StoreFault | null = null;

  constructor(db: DatabaseSync, clock: LedgerClock, writer: BatchWriter, heads: Heads, lock: DatabaseSync | null) {
    this.#db = db;
    this.#clock = clock;
    this.#writer = writer;
    this.#lock = lock;
    writer.onHealth = (trouble) => this.#noteHealth(trouble);
    writer.onPosted = (posted) => this.#notePosted(posted);
    this.apiKeys = new SqliteApiKeys(db, clock, (ids) => writer.noteKeyUses(ids));
    this.#reads = new ReadsInTurn(db, this.#writes);
    this.accountReads = new SqliteAccountReads(db, clock, {
      read: (read) => this.#read(read),
      readOf: (user, read) => this.#reads.add(user, () => this.#read(read)),
      headOf: (user) => this.#headOf(user),
    });
    this.#journal = new JournalReader(db);
    this.#heads = heads;
    this.#chain = new PostingsReader(db);
    this.#places = new PlaceFinder(db);
    this.#due = prepare(
      db,
      `SELECT account, end_user FROM holdings
       WHERE type = 'recurring' AND status = 'active' AND ends_at <= ? ORDER BY ends_at LIMIT ?`,
    );
  }

  async write(commands: readonly Command[], onDecided = () => {}): Promise<readonly (Outcome | null)[]> {
    if (this.#broken) throw this.#broken;
    const underWay = this.#writes.begin(commands);
    try {
      const written = await this.#writer.write(commands, onDecided);
      this.#noteWritten(commands, written);
      this.#writes.end(underWay);
      return written.outcomes;
    } catch (error) {
      this.#trouble = faultOf(error);
      if (this.#trouble.code === 'OutcomeUnknown') this.#writes.lose(underWay);
      else this.#writes.end(underWay);
      throw this.#trouble;
    }
  }

  cycles(user: EndUserKey): Promise<Loaded> {
    return this.#reads.add(user, () => this.#read(() => this.#load(user)));
  }

  /** Postings never change, and one read of the holdings says where they begin: the page is a snapshot as it is. */
  transactions(user: EndUserKey, { from, limit, within }: PageRequest): Promise<TransactionPage> {
    const read = () => {
      const { now, cycles, latestPosting } = this.#load(user);
      const first = () => (within ? this.#places.find(user, latestPosting, within.last) : latestPosting);
      const start = from === null ? first() : Number(from);
      return { now, cycles, ...transactionPage(this.#chain.from(start, user), limit, within?.first) };
    };
    return this.#reads.add(user, () => this.#read(read));
  }

  async renewalsDue(limit: number): Promise<readonly EndUserKey[]> {
    return this.#read(() =>
      rowsOf(this.#due, this.#clock.peek(), limit).map(([account, endUser]) => ({
        account: account as number,
        endUser: uuidOf(endUser as Uint8Array),
      })),
    );
  }

  async renewDue(): Promise<RenewedSome> {
    if (this.#broken) throw this.#broken;
    this.#renewing += 1;
    try {
      const { endUsers, isMore, posted } = await this.#writer.renewDue();
      if (this.#trouble !== null) this.#noteHealth(null);
      this.#notePosted(posted);
      return { endUsers, isMore };
    } catch (error) {
      this.#trouble = faultOf(error);
      throw this.#trouble;
    } finally {
      this.#renewing -= 1;
    }
  }

  isJoining(): boolean {
    return this.#renewing > 0;
  }

  deleteExpiredRecords(ageMs: number): Promise<number> {
    return this.#writer.deleteExpiredRecords(ageMs);
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditFile(this.#db, report);
  }

  async prove(through: readonly TransactionId[] | null, report: (finding: Finding) => void): Promise<LedgerProof> {
    return proveFile(this.#db, through, report);
  }

  async addChains(): Promise<number> {
    return addChainsTo(this.#db);
  }

  async addUpTotals(): Promise<void> {
    try {
      beginToWrite(this.#db);
      showUnposted(this.#db);
      addUpAgain(this.#db);
      hideUnposted(this.#db);
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

  #headOf(user: EndUserKey): number | undefined {
    return this.#heads.get(user);
  }

  #noteWritten(commands: readonly Command[], { heads, posted }: Written): void {
    if (this.#trouble !== null) this.#noteHealth(null);
    this.#notePosted(posted);
    commands.forEach((command, index) => {
      const head = heads[index] as number;
      if (head > 0) this.#heads.set(command, head);
    });
  }

  #notePosted(posted: readonly EndUserKey[]): void {
    for (const user of posted) this.#heads.delete(user);
  }

  /** After a fault the journal may hold more than was answered: it is looked through as at a start. */
  #noteHealth(trouble: StoreFault | null): void {
    if (trouble === null) {
      this.#heads = headsOf(this.#db);
      this.#writes.find();
    }
    this.#trouble = trouble;
  }

  /**
   * The instant is taken after the rows are read. Taken before, it could be earlier than the batch that wrote them, and
   * a period that was renewed in between would count beside the one before it.
   */
  #load(user: EndUserKey): Loaded & Holdings {
    const holdings = this.#journal.read(user, this.#headOf(user), this.#clock.now());
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
