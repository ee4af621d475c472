// A ledger file as either end of a copy. The lock of the file is held all the while, so that no server runs on it.
// Postings get numbers of this file, and chains of their own; everything else is as it was.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import {
  type AccountRow,
  type CopyDestination,
  type CopySource,
  inBatches,
  type KeyRow,
  type LedgerHead,
  type LedgerRecord,
  type Totals,
} from '../ledger-copy.ts';
import type { PeopleRow } from '../people-rows.ts';
import { type AuditReport, CannotOpen } from '../store.ts';
import type { IdPosition } from '../transaction-ids.ts';
import { answersInOrder, replaceAnswers } from './answer-copying.ts';
import { connect, lockLedgerFile, openLedgerFile, refuseUnfinishedCopy, unfinishedCopy } from './ledger-file.ts';
import { addUpAgain } from './movements.ts';
import { clockChecksum } from './open-writer.ts';
import { enterPeople, peopleOf } from './people-table.ts';
import { RecordWriter } from './record-writer.ts';
import { CYCLE_COLUMNS, cycleOf, PostingsReader, prepare, type Row } from './rows.ts';
import { beginToWrite, inTurn } from './turn-to-write.ts';
import { showUnposted } from './unposted-view.ts';
import { bytesOf, uuidOf } from './uuid.ts';
import { auditFile } from './whole-store.ts';

/** Postings of one end user that are held in memory at once, to be given out from the first to the latest. */
const CHAIN_STRIDE = 1_000;

/** @throws CannotOpen when there is no ledger, or another process has it */
export function openSqliteSource(file: string): CopySource {
  if (!existsSync(file)) throw new CannotOpen(`There is no ledger at ${file} to copy.`);
  return opened(file, (db) => refuseUnfinishedCopy(db, file));
}

/** @throws CannotOpen when another process has it */
export function openSqliteDestination(file: string): CopyDestination {
  return opened(file, () => {});
}

function opened(file: string, check: (db: DatabaseSync) => void): SqliteCopying {
  const lock = lockLedgerFile(file);
  let db: DatabaseSync | null = null;
  try {
    db = openLedgerFile(file, true);
    check(db);
    return new SqliteCopying(file, db, lock);
  } catch (error) {
    db?.close();
    lock.close();
    throw error;
  }
}

class SqliteCopying implements CopyDestination {
  readonly name: string;
  readonly #db: DatabaseSync;
  readonly #lock: DatabaseSync;
  #writer: RecordWriter | null = null;

  constructor(file: string, db: DatabaseSync, lock: DatabaseSync) {
    this.name = file;
    this.#db = db;
    this.#lock = lock;
  }

  async head(): Promise<LedgerHead> {
    const accounts = this.#db.prepare('SELECT account, name, created_at AS createdAt FROM accounts ORDER BY account');
    const keys = this.#db.prepare(
      `SELECT key_id AS id, account, scope, secret_sha256 AS secretSha256, hint, created_at AS createdAt, revoked_at AS revokedAt, name,
         last_used_at AS lastUsedAt FROM api_keys ORDER BY key_id`,
    );
    const clock = this.#db.prepare('SELECT at, sequence FROM clock').get();
    return {
      accounts: accounts.all() as unknown as AccountRow[],
      keys: keys.all() as unknown as KeyRow[],
      clock: { at: Number(clock?.at ?? 0), sequence: Number(clock?.sequence ?? 0) },
    };
  }

  async totals(): Promise<Totals> {
    const counts = this.#db
      .prepare(
        `SELECT (SELECT count(*) FROM holdings WHERE type = 'end-user') AS endUsers,
                (SELECT count(*) FROM postings) AS postings`,
      )
      .get();
    return { endUsers: Number(counts?.endUsers), postings: Number(counts?.postings) };
  }

  async *dump(after: EndUserKey | null): AsyncGenerator<readonly LedgerRecord[]> {
    const db = connect(this.name);
    try {
      db.exec('BEGIN');
      showUnposted(db);
      yield* inBatches(recordsOf(db, after));
    } finally {
      db.close();
    }
  }

  async *answers(): AsyncGenerator<readonly IdempotencyRecord[]> {
    const db = connect(this.name);
    try {
      yield* inBatches(answersInOrder(db));
    } finally {
      db.close();
    }
  }

  async loadAnswers(answers: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void> {
    await replaceAnswers(this.#db, answers);
  }

  async people(): Promise<readonly PeopleRow[]> {
    return peopleOf(this.#db);
  }

  async loadPeople(people: readonly PeopleRow[]): Promise<void> {
    enterPeople(this.#db, people);
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditFile(this.#db, report);
  }

  async begin(source: string, head: LedgerHead): Promise<EndUserKey | null> {
    beginToWrite(this.#db);
    try {
      const mark = unfinishedCopy(this.#db);
      if (mark === null) this.#mark(source, head);
      else if (mark.source !== source) throw this.#otherCopy();
      this.#db.exec('COMMIT');
      this.#writer = new RecordWriter(this.#db);
      return mark?.last ?? null;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  async load(records: readonly LedgerRecord[]): Promise<void> {
    assert(this.#writer, 'a copy begins before it loads');
    if (records.length === 0) return;
    if (!this.#db.isTransaction) beginToWrite(this.#db);
    for (const record of records) this.#writer.write(record);
  }

  async commit({ account, endUser }: EndUserKey): Promise<void> {
    assert(this.#writer, 'a copy begins before it commits');
    this.#writer.savePosted();
    this.#db.prepare('UPDATE copying SET account = ?, end_user = ?').run(account, bytesOf(endUser));
    this.#db.exec('COMMIT');
  }

  async moveClock({ at, sequence }: IdPosition): Promise<void> {
    const move = this.#db.prepare(
      `INSERT INTO clock (only, at, sequence, checksum) VALUES (1, ?, ?, ?)
       ON CONFLICT (only) DO UPDATE SET at = excluded.at, sequence = excluded.sequence, checksum = excluded.checksum
       WHERE (excluded.at, excluded.sequence) > (at, sequence)`,
    );
    inTurn(this.#db, () => move.run(at, sequence, clockChecksum(at, sequence)));
  }

  async addUpTotals(): Promise<void> {
    beginToWrite(this.#db);
    addUpAgain(this.#db);
    this.#db.exec('COMMIT');
  }

  async finish(): Promise<void> {
    assert(!this.#db.isTransaction, 'all that was loaded is committed');
    inTurn(this.#db, () => this.#db.exec('DROP TABLE copying'));
  }

  /** Closing the connection rolls back what is not committed. */
  async close(): Promise<void> {
    if (!this.#db.isTransaction) this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    this.#db.close();
    this.#lock.close();
  }

  #mark(source: string, { accounts, keys }: LedgerHead): void {
    const isEmpty = ['accounts', 'api_keys', 'holdings', 'postings', 'answers', 'answer_slips'].every(
      (table) => this.#db.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined,
    );
    if (!isEmpty)
      throw new CannotOpen(`${this.name} holds a ledger already; copy to a file that is not there yet, or delete it.`);
    this.#db.exec(
      'CREATE TABLE copying (only INTEGER PRIMARY KEY CHECK (only = 1), source TEXT NOT NULL, account INTEGER, end_user BLOB) STRICT',
    );
    this.#db.prepare('INSERT INTO copying (only, source) VALUES (1, ?)').run(source);
    const addAccount = this.#db.prepare('INSERT INTO accounts (account, name, created_at) VALUES (?, ?, ?)');
    for (const { account, name, createdAt } of accounts) addAccount.run(account, name, createdAt);
    const addKey = this.#db.prepare(
      'INSERT INTO api_keys (key_id, account, scope, secret_sha256, hint, created_at, revoked_at, name, last_used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    for (const { id, account, scope, secretSha256, hint, createdAt, revokedAt, name, lastUsedAt } of keys)
      addKey.run(id, account, scope, secretSha256, hint, createdAt, revokedAt, name, lastUsedAt);
  }

  #otherCopy(): CannotOpen {
    return new CannotOpen(
      `${this.name} holds a part of a copy of another ledger, or of this one before it changed; delete it, and copy again.`,
    );
  }
}

/** @param options whether integers past 2^53−1 are read as well, rounded */
export function* recordsOf(
  db: DatabaseSync,
  after: EndUserKey | null,
  options: { anyInteger?: boolean } = {},
): Generator<LedgerRecord> {
  const rows = prepare(
    db,
    `SELECT ${CYCLE_COLUMNS}, chain, latest_posting, account, end_user FROM holdings WHERE (account, end_user) > (?, ?)
     ORDER BY account, end_user, ends_at, cycle_id`,
  );
  rows.setReadBigInts(options.anyInteger === true);
  const chains = new OldestFirst(db, options);
  const from = after === null ? ([-1, new Uint8Array()] as const) : ([after.account, bytesOf(after.endUser)] as const);
  for (const each of rows.iterate(...from)) {
    const row = each as unknown as Row;
    const [chain, number, account, endUser] = row.slice(-4);
    const user = { account: Number(account), endUser: uuidOf(endUser as Uint8Array) };
    if (number === null) {
      yield { kind: 'cycle', user, cycle: cycleOf(row) };
      continue;
    }
    let latest: TransactionId | null = null;
    for (const posting of chains.of(user, Number(number))) {
      latest = posting.transactionId;
      yield { kind: 'posting', user, posting };
    }
    yield { kind: 'end-user', user, latest, chain: chain as ChainHash | null };
  }
}

/**
 * Gives out the chain of an end user from its beginning, though it leads backwards: a first walk along it remembers
 * where each stretch ends, and each stretch is then held and turned around.
 */
class OldestFirst {
  readonly #chain: PostingsReader;
  readonly #previous;

  constructor(db: DatabaseSync, options: { anyInteger?: boolean }) {
    this.#chain = new PostingsReader(db, options);
    this.#previous = prepare(db, 'SELECT previous FROM postings WHERE posting = ? AND previous < posting');
  }

  *of(user: EndUserKey, latest: number): Generator<Posting> {
    const ends: number[] = [];
    let at: number | null | undefined = latest;
    for (let step = 0; typeof at === 'number'; step++) {
      if (step % CHAIN_STRIDE === 0) ends.push(at);
      const row: Row | undefined = this.#previous.get(at) as unknown as Row | undefined;
      at = row?.[0] as number | null | undefined;
    }
    for (const end of ends.reverse()) {
      const stretch: Posting[] = [];
      for (const { posting } of this.#chain.from(end, user)) if (stretch.push(posting) === CHAIN_STRIDE) break;
      yield* stretch.reverse();
    }
  }
}
