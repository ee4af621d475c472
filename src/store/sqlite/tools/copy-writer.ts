// Writes copied postings into a ledger file, with new numbers and links. Also writes the balances and snapshots that
// follow from the postings, and the summary of each end user, which contains the progress of event derivation. Runs
// within the caller's transactions.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
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
  /** The instant of the latest transaction. */
  #createdAt: Instant = 0;

  constructor(db: DatabaseSync) {
    this.#balances = new BalanceWriter(db);
    this.#journal = new JournalWriter(db);
    this.#events = new EventWriter(db);
    this.#saveFlushed = prepare(db, 'UPDATE flushed SET posting = ?');
  }

  add(user: EndUserKey, transaction: readonly [Posting, ...Posting[]]): void {
    const { state, latestPosting } = this.#current;
    const after = applyAll(state, transaction);
    this.#current = { state: after, latestPosting: this.#journal.append(user, transaction, latestPosting, after) };
    this.#createdAt = transaction[0].createdAt;
  }

  /** Call this after the last transaction of an end user. */
  end(user: EndUserKey, events: Pick<Derivation, 'next' | 'dueAt'>): void {
    const { latestPosting } = this.#current;
    assert(latestPosting !== null, 'every copied end user has at least one posting');
    this.#balances.write(user, NOTHING, this.#current);
    this.#balances.flush();
    this.#journal.flush();
    const isNew = this.#events.saveSummary(
      newSummary(user, null, events, { number: latestPosting, createdAt: this.#createdAt }),
    );
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
}
