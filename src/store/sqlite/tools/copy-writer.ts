// Writes copied postings into a ledger file, with new numbers and links. Also writes the balances and snapshots that
// follow from the postings, and the summary of each end user, which contains the progress of event derivation. Runs
// within the caller's transactions.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { EMPTY_STATE } from '../../../ledger/state.ts';
import type { Derivation } from '../../event-log.ts';
import { BalanceWriter } from '../balances/balance-writer.ts';
import type { Balances } from '../balances/end-user-reader.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { EventWriter, newSummary } from '../journal/events.ts';
import { JournalWriter } from '../journal/journal-writer.ts';

const NOTHING: Balances = { state: EMPTY_STATE, latestPosting: null };

export class CopyWriter {
  readonly #balances: BalanceWriter;
  readonly #journal: JournalWriter;
  readonly #events: EventWriter;
  readonly #saveFlushed: Statement;
  #current = NOTHING;
  #transaction: Posting[] = [];

  constructor(db: DatabaseSync) {
    this.#balances = new BalanceWriter(db);
    this.#journal = new JournalWriter(db);
    this.#events = new EventWriter(db);
    this.#saveFlushed = prepare(db, 'UPDATE flushed SET posting = ?');
  }

  add(user: EndUserKey, posting: Posting): void {
    if (this.#transaction[0]?.transactionId !== posting.transactionId) this.#endTransaction(user);
    this.#transaction.push(posting);
  }

  /** Call this after the last posting of an end user. */
  end(user: EndUserKey, events: Pick<Derivation, 'next' | 'dueAt'>): void {
    const createdAt = this.#transaction.at(-1)?.createdAt;
    this.#endTransaction(user);
    const { latestPosting } = this.#current;
    assert(latestPosting !== null && createdAt !== undefined, 'every copied end user has at least one posting');
    this.#balances.write(user, NOTHING, this.#current);
    this.#balances.flush();
    this.#journal.flush();
    const isNew = this.#events.saveSummary(newSummary(user, null, events, { number: latestPosting, createdAt }));
    assert(isNew, 'each end user is copied once');
    this.#current = NOTHING;
  }

  /**
   * Marks all postings as flushed and their events as derived, because `end` has written the balances and the summary
   * of each end user.
   */
  saveFlushed(): void {
    this.#saveFlushed.run(this.#journal.latest);
    this.#events.savePosition(this.#journal.latest);
  }

  #endTransaction(user: EndUserKey): void {
    if (this.#transaction.length === 0) return;
    const { state, latestPosting } = this.#current;
    const after = applyAll(state, this.#transaction);
    const latest = this.#journal.append(user, this.#transaction, latestPosting, after);
    this.#current = { state: after, latestPosting: latest };
    this.#transaction = [];
  }
}
