// Writes the records of a copy into a ledger file, within a transaction of the caller.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Head } from '../../ledger/chain.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle } from '../../ledger/cycle.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { LedgerRecord } from '../ledger-copy.ts';
import { insertLandmark, isLandmark } from './landmarks.ts';
import { CYCLE_COLUMNS, END_OF_TIME, POSTING_COLUMNS, prepare } from './rows.ts';
import { bytesOf } from './uuid.ts';

export class RecordWriter {
  readonly #insertCycle: StatementSync;
  readonly #insertPosting: StatementSync;
  readonly #insertEndUser: StatementSync;
  readonly #insertLandmark: StatementSync;
  readonly #savePosted: StatementSync;
  #lastPosting: number;
  /** The posting before the next one of the same end user. */
  #previous: number | null = null;
  /** The place of that one in the chain, from 1 for the first. */
  #place = 0;

  constructor(db: DatabaseSync) {
    this.#insertCycle = prepare(
      db,
      `INSERT INTO holdings (account, end_user, ${CYCLE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertPosting = prepare(
      db,
      `INSERT INTO postings (posting, previous, account, end_user, ${POSTING_COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertEndUser = prepare(
      db,
      `INSERT INTO holdings (latest_posting, posting_count, chain, account, end_user, ends_at, cycle_id, type)
       VALUES (?, ?, ?, ?, ?, ${END_OF_TIME}, x'', 'end-user')`,
    );
    this.#insertLandmark = insertLandmark(db);
    this.#savePosted = prepare(db, 'UPDATE posted SET posting = ?');
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
  }

  /** Holdings are copied as they are: nothing waits to be posted. */
  savePosted(): void {
    this.#savePosted.run(this.#lastPosting);
  }

  write(record: LedgerRecord): void {
    if (record.kind === 'cycle') this.#writeCycle(record.user, record.cycle);
    else if (record.kind === 'posting') this.#writePosting(record.user, record.posting);
    else this.#writeEndUser(record.user, record.chain);
  }

  #writeEndUser({ account, endUser }: EndUserKey, chain: Head | null): void {
    assert(this.#previous !== null, 'an end user has a posting');
    this.#insertEndUser.run(this.#previous, this.#place, chain, account, bytesOf(endUser));
    this.#previous = null;
    this.#place = 0;
  }

  #writeCycle({ account, endUser }: EndUserKey, cycle: Cycle): void {
    assertCycle(cycle);
    const { id, period, type, status, amount, remaining, start, end, validityDays } = cycle;
    const columns = [period, type, status, amount, remaining, start, end, validityDays] as const;
    this.#insertCycle.run(account, bytesOf(endUser), bytesOf(id), ...columns);
  }

  #writePosting({ account, endUser }: EndUserKey, posting: Posting): void {
    const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
    const number = ++this.#lastPosting;
    const ids = [bytesOf(transactionId), bytesOf(cycleId)] as const;
    const columns = [period, kind, amount, createdAt, expiresAt, actor, note] as const;
    const user = bytesOf(endUser);
    this.#insertPosting.run(number, this.#previous, account, user, ...ids, ...columns);
    this.#previous = number;
    this.#place += 1;
    if (isLandmark(this.#place)) this.#insertLandmark.run(account, user, ids[0], number);
  }
}
