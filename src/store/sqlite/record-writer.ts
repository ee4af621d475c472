// Writes the records of a copy into a ledger file, within a transaction of the caller.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle } from '../../ledger/cycle.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import type { LedgerRecord } from '../ledger-copy.ts';
import { HoldingsWriter } from './holdings-writer.ts';
import { JournalWriter, type LatestPosting } from './journal-writer.ts';
import { prepare } from './rows.ts';

const NO_CHAIN: LatestPosting = { latestPosting: null, postingCount: 0 };

export class RecordWriter {
  readonly #holdings: HoldingsWriter;
  readonly #journal: JournalWriter;
  readonly #savePosted: StatementSync;
  /** Of the chain of the end user whose records come. */
  #end: LatestPosting = NO_CHAIN;

  constructor(db: DatabaseSync) {
    this.#holdings = new HoldingsWriter(db);
    this.#journal = new JournalWriter(db);
    this.#savePosted = prepare(db, 'UPDATE posted SET posting = ?');
  }

  /** Holdings are copied as they are: nothing waits to be posted. */
  savePosted(): void {
    this.#savePosted.run(this.#journal.lastPosting);
  }

  write(record: LedgerRecord): void {
    if (record.kind === 'cycle') this.#writeCycle(record.user, record.cycle);
    else if (record.kind === 'posting') {
      this.#end = this.#journal.enter(record.user, record.posting, this.#end);
      this.#journal.flush();
    } else this.#writeEndUser(record.user, record.chain);
  }

  #writeEndUser(user: EndUserKey, chain: ChainHash | null): void {
    assert(this.#end.latestPosting !== null, 'an end user has a posting');
    this.#holdings.insertEndUser(user, { ...this.#end, chain });
    this.#end = NO_CHAIN;
  }

  #writeCycle(user: EndUserKey, cycle: Cycle): void {
    assertCycle(cycle);
    this.#holdings.insertCycle(user, cycle);
  }
}
