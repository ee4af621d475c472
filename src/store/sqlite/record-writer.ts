// Writes the records of a copy into a ledger file, within a transaction of the caller.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Head } from '../../ledger/chain.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle } from '../../ledger/cycle.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { LedgerRecord } from '../ledger-copy.ts';
import { HoldingsWriter } from './holdings-writer.ts';
import { insertLandmark, isLandmark } from './landmarks.ts';
import { POSTING_COLUMNS, prepare } from './rows.ts';
import { bytesOf } from './uuid.ts';

export class RecordWriter {
  readonly #holdings: HoldingsWriter;
  readonly #insertPosting: StatementSync;
  readonly #insertLandmark: StatementSync;
  readonly #savePosted: StatementSync;
  #lastPosting: number;
  /** The posting before the next one of the same end user. */
  #previous: number | null = null;
  /** The place of that one in the chain, from 1 for the first. */
  #place = 0;

  constructor(db: DatabaseSync) {
    this.#holdings = new HoldingsWriter(db);
    this.#insertPosting = prepare(
      db,
      `INSERT INTO postings (posting, previous, account, end_user, ${POSTING_COLUMNS})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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

  #writeEndUser(user: EndUserKey, chain: Head | null): void {
    assert(this.#previous !== null, 'an end user has a posting');
    this.#holdings.insertEndUser(user, { latestPosting: this.#previous, postingCount: this.#place, chain });
    this.#previous = null;
    this.#place = 0;
  }

  #writeCycle(user: EndUserKey, cycle: Cycle): void {
    assertCycle(cycle);
    this.#holdings.insertCycle(user, cycle);
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
