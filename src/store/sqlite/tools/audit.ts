// Audits a ledger file in one snapshot: applies all postings of each end user again, and compares the result with the
// stored balances. Keeps only one end user's cycles and a thousand of its postings in memory at a time.

import type { DatabaseSync } from 'node:sqlite';
import { applyAll } from '../../../ledger/apply.ts';
import { audit, type Finding } from '../../../ledger/audit.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import { isActiveRecurring } from '../../../ledger/cycle.ts';
import type { Hold } from '../../../ledger/hold.ts';
import { nameOf } from '../../../ledger/idempotency.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { InvariantViolation } from '../../../ledger/invariant.ts';
import { NEVER, nextEventAt } from '../../../ledger/next-event.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { holdsOfText } from '../../state-text.ts';
import { type AuditReport, rowsDiffer } from '../../tools/ledger-tools.ts';
import { CYCLE_COLUMNS, cycleOf, END_OF_TIME } from '../balances/end-user-reader.ts';
import { SQLITE, sqliteCode } from '../file/sqlite-error.ts';
import { numberOf, prepare, type Row, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';
import { hashOf, RECORD_COLUMNS, recordOf } from '../idempotency/record-table.ts';
import { PostingReader } from '../journal/posting-reader.ts';
import { TransactionReader } from '../journal/transaction-reader.ts';
import { savedClock } from '../writer/ledger-clock.ts';
import { type EndUserPostings, endUsersOf, OldestFirst } from './end-users.ts';
import { SnapshotAudit } from './snapshot-audit.ts';
import { SummaryAudit } from './summary-audit.ts';
import { totalsFaults } from './totals.ts';

const ADVANCE_POSTINGS = 5_000;

/**
 * The maximum number of sentences in `AuditReport.store`. A single sentence already shows that the store is damaged.
 */
const STORE_FAULTS_MAX = 100;

type FaultsOf = (db: DatabaseSync) => Iterable<string>;

const DERIVED: readonly (readonly [what: string, faultsOf: FaultsOf])[] = [
  ['the totals', totalsFaults],
  ['the idempotency records', recordFaults],
  ['the positions in the journal', markFaults],
];

type Report = (finding: Finding) => void;

/**
 * @param advance called every `ADVANCE_POSTINGS` postings, with the number of checked postings and the total number of
 * postings
 */
export function auditFile(
  db: DatabaseSync,
  report: Report,
  advance: (checked: number, of: number) => void = () => {},
): AuditReport {
  const fileAudit = new FileAudit(db, report, advance);
  db.exec('BEGIN');
  try {
    fileAudit.run();
  } catch (error) {
    if (sqliteCode(error) !== SQLITE.corrupt) throw error;
    fileAudit.fault(`the rest of the file cannot be read: ${(error as Error).message}`);
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
  return fileAudit.total;
}

class FileAudit {
  readonly total = { endUsers: 0, postings: 0, store: [] as string[] };
  readonly #db: DatabaseSync;
  readonly #report: Report;
  readonly #advance: (checked: number, of: number) => void;

  constructor(db: DatabaseSync, report: Report, advance: (checked: number, of: number) => void) {
    this.#db = db;
    this.#report = report;
    this.#advance = advance;
  }

  fault(sentence: string): void {
    if (this.total.store.length < STORE_FAULTS_MAX) this.total.store.push(sentence);
  }

  run(): void {
    this.#check(pageFaults);
    this.#attempt('the end users', () => this.#auditEndUsers());
    for (const [what, faultsOf] of DERIVED) this.#attempt(what, () => this.#check(faultsOf));
  }

  #check(faultsOf: FaultsOf): void {
    for (const fault of Iterator.from(faultsOf(this.#db)).take(STORE_FAULTS_MAX)) this.fault(fault);
  }

  /** Runs a part of the audit. An unreadable value is reported, and ends only this part. */
  #attempt(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error;
      this.fault(`${what} cannot be read: ${error.message}`);
    }
  }

  #auditEndUsers(): void {
    const postingsStored = numberOf(this.#db, 'SELECT count(*) FROM postings');
    const cyclesStored = numberOf(this.#db, `SELECT count(*) FROM balances WHERE ends_at <> ${END_OF_TIME}`);
    const now = this.#auditClock(postingsStored);
    const reader = new StoredReader(this.#db, (sentence) => this.fault(sentence));
    const transactions = new TransactionReader(this.#db, { anyInteger: true });
    const oldestFirst = new OldestFirst(this.#db, { anyInteger: true });
    const snapshots = new SnapshotAudit(this.#db, (sentence) => this.fault(sentence));
    const summaries = new SummaryAudit(this.#db, (sentence) => this.fault(sentence));
    for (const endUser of endUsersOf(this.#db, null)) {
      const { user } = endUser;
      this.total.endUsers += 1;
      const postings = snapshots.check(user, this.#counted(oldestFirst.of(endUser), postingsStored));
      const current = this.#current(endUser, reader);
      const find = (id: TransactionId) => transactions.postingsOf(user, endUser.latest, id);
      const findings = [...audit({ user, ...current, postings, find }, now)];
      for (const finding of findings) this.#report(finding);
      summaries.check(endUser, findings.length === 0 ? current : null, now);
    }
    snapshots.end();
    summaries.end();
    const { postings } = this.total;
    if (postingsStored !== postings)
      this.fault(rowsDiffer('stored postings', postingsStored, 'postings that belong to an end user', postings));
    if (cyclesStored !== reader.cycles)
      this.fault(rowsDiffer('stored cycles', cyclesStored, 'cycles of end users with postings', reader.cycles));
  }

  *#counted(postings: Iterable<Posting>, of: number): Generator<Posting> {
    for (const posting of postings) {
      this.total.postings += 1;
      if (this.total.postings % ADVANCE_POSTINGS === 0) this.#advance(this.total.postings, of);
      yield posting;
    }
  }

  #current({ user, stored, latest }: EndUserPostings, reader: StoredReader): EndUserState {
    const state = reader.of(user);
    if (latest === stored) return state;
    const pending = new PostingReader(this.#db, { anyInteger: true }).after(stored ?? 0, latest, user);
    try {
      const postings = pending.map(({ posting }) => posting);
      return applyAll(state, postings);
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
      const { invariant, message } = error;
      this.#report({ invariant, user, message: `a pending posting breaks the rule that ${message}` });
      return state;
    }
  }

  /** Audits the ledger's clock. @returns the latest instant that the ledger has used */
  #auditClock(postings: number): number {
    const saved = savedClock(this.#db);
    if (saved === null && postings > 0) this.fault('the clock of the ledger is missing');
    if (saved?.isIntact === false) this.fault('the clock of the ledger was changed by something other than Scrip');
    return saved?.position.at ?? 0;
  }
}

/** Reads the stored cycles and holds of an end user, including ended cycles. */
class StoredReader {
  cycles = 0;
  readonly #fault: (sentence: string) => void;
  readonly #cycles: Statement;
  readonly #own: Statement;

  constructor(db: DatabaseSync, fault: (sentence: string) => void) {
    this.#fault = fault;
    this.#cycles = prepare(
      db,
      `SELECT ${CYCLE_COLUMNS} FROM balances WHERE account = ? AND end_user = ? AND ends_at <> ${END_OF_TIME}`,
    );
    this.#cycles.setReadBigInts(true);
    this.#own = prepare(
      db,
      `SELECT holds, due_at FROM balances WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`,
    );
    this.#own.setReadBigInts(true);
  }

  of(user: EndUserKey): EndUserState {
    const key = [user.account, bytesOf(user.endUser)] as const;
    const cycles = this.#cycles.all(...key).map(cycleOf);
    this.cycles += cycles.length;
    const [holds, dueAt] = this.#own.get(...key) ?? [null, null];
    const state = { cycles, holds: this.#holdsOf(holds as string | null, user) };
    this.#checkDue(user, state, dueAt === null ? NEVER : Number(dueAt));
    return state;
  }

  #holdsOf(text: string | null, { account, endUser }: EndUserKey): readonly Hold[] {
    try {
      return holdsOfText(text);
    } catch {
      this.#fault(`the holds of account ${account}, end user ${endUser} cannot be read`);
      return [];
    }
  }

  /** Checks the stored due instant, which the renewal job uses to find end users with due events. */
  #checkDue({ account, endUser }: EndUserKey, state: EndUserState, stored: Instant): void {
    // If there are two active recurring cycles, the audit of the end user already reports this.
    if (state.cycles.filter(isActiveRecurring).length > 1 || nextEventAt(state) === stored) return;
    this.#fault(
      `the stored instant of the next event does not match the balances of account ${account}, end user ${endUser}`,
    );
  }
}

function pageFaults(db: DatabaseSync): string[] {
  const faults = db
    .prepare('PRAGMA integrity_check(20)')
    .all()
    .map((row) => String(row.integrity_check));
  return faults.length === 1 && faults[0] === 'ok' ? [] : faults;
}

/**
 * Checks the stored positions in the journal: the posting up to which the stored balances are complete, and the last
 * posting that each consumer of the feed has processed. If a position were beyond the end of the journal, Scrip would
 * skip new postings.
 */
function* markFaults(db: DatabaseSync): Generator<string> {
  const latest = numberOf(db, 'SELECT coalesce(max(posting), 0) FROM postings');
  const flushed = numberOf(db, 'SELECT posting FROM flushed');
  const consumed = numberOf(db, 'SELECT coalesce(max(posting), 0) FROM feed_positions');
  if (!(flushed <= latest))
    yield 'the position of the latest flushed posting is missing, or beyond the end of the journal';
  if (consumed > latest) yield 'the position of a consumer of the feed is beyond the end of the journal';
}

/** Checks that each idempotency record can be read, has the hash of its key, and can be found by this hash. */
function* recordFaults(db: DatabaseSync): Generator<string> {
  const indexed = db.prepare('SELECT record, seed FROM idempotency_indexed').get();
  if (indexed === undefined) {
    yield 'the seed of the idempotency records is missing';
    return;
  }
  const seed = Buffer.from(indexed.seed as Uint8Array).toString('hex');
  const rows = prepare(
    db,
    `SELECT ${RECORD_COLUMNS}, r.record, r.hash, i.record FROM idempotency_records AS r
     LEFT JOIN idempotency_index AS i ON i.hash = r.hash AND i.record = r.record`,
  );
  for (const row of rows.iterate()) {
    const [number, hash, found] = row.slice(-3) as [number, number, number | null];
    const isFound = found !== null || number > Number(indexed.record);
    const fault = recordFault(row, seed, hash) ?? (isFound ? null : 'is missing from the index');
    if (fault !== null) yield `idempotency record ${number} ${fault}`;
  }
}

function recordFault(row: Row, seed: string, hash: number): string | null {
  try {
    const record = recordOf(row);
    return hashOf(seed, nameOf(record)) === hash ? null : 'is stored under a hash that does not match its key';
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return `cannot be read (${error.message})`;
  }
}
