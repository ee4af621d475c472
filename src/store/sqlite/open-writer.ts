// The writer's connection to a ledger file, with its statements: what a batch leaves behind is written here, and the clock.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { UserChange } from '../../ledger/fold.ts';
import type { Instant } from '../../ledger/instant.ts';
import { movementsOf } from '../../ledger/movement.ts';
import { CannotOpen } from '../store.ts';
import type { IdPosition } from '../transaction-ids.ts';
import type { AnswerLimits } from './answer-index.ts';
import { AnswerTable } from './answer-table.ts';
import { DueRenewals } from './due-renewals.ts';
import { chainAfter, JournalWriter, type LatestPosting } from './journal-writer.ts';
import { MovementWriter } from './movements.ts';
import { prepare } from './rows.ts';
import { type Loaded, type PostingLimits, Unposted } from './unposted.ts';
import type { Slot } from './user-table.ts';

/** Where an end user stands with a batch. */
interface Standing {
  /** Its place among those who are known, if it is. */
  readonly slot: Slot;
  readonly latestPosting: number | null;
}

/** One whose transaction fails is not used again. */
export class OpenWriter {
  readonly db: DatabaseSync;
  readonly unposted: Unposted;
  readonly answers: AnswerTable;
  readonly movements: MovementWriter;
  readonly due: DueRenewals;
  readonly #journal: JournalWriter;
  readonly #saveClock: StatementSync;
  readonly #noteKeyUses: StatementSync;

  constructor(db: DatabaseSync, limits: PostingLimits, answerLimits: AnswerLimits) {
    this.db = db;
    this.unposted = new Unposted(db, limits);
    this.answers = new AnswerTable(db, answerLimits);
    this.movements = new MovementWriter(db);
    this.due = new DueRenewals(db);
    this.#journal = new JournalWriter(db);
    this.#saveClock = prepare(db, 'REPLACE INTO clock (only, at, sequence, checksum) VALUES (1, ?, ?, ?)');
    this.#noteKeyUses = prepare(
      db,
      'UPDATE api_keys SET last_used_at = ? WHERE key_id IN (SELECT value FROM json_each(?))',
    );
  }

  /**
   * @param loaded what each end user of the batch had
   * @returns where each of them stands now
   */
  storeAll(changes: readonly UserChange[], loaded: readonly Loaded[], isChained: boolean): readonly Standing[] {
    const standing: Standing[] = loaded.map(({ slot, holdings }) => ({ slot, latestPosting: holdings.latestPosting }));
    for (const change of changes)
      standing[change.index] = this.#store(change, loaded[change.index] as Loaded, isChained);
    this.#journal.flush();
    this.unposted.flush();
    this.movements.write(movementsOf(changes));
    return standing;
  }

  /** @param loaded what the end user had: the first new posting follows its latest one */
  #store(change: UserChange, loaded: Loaded, isChained: boolean): Standing {
    const { user, postings, cycles } = change;
    let end: LatestPosting = loaded.holdings;
    for (const posting of postings) {
      const entered = this.#journal.enter(user, posting, end);
      this.movements.noteActivity(user.account, entered.latestPosting);
      end = entered;
    }
    const chain = isChained ? chainAfter(loaded.holdings, change) : null;
    const { latestPosting, postingCount } = end;
    const slot = this.unposted.take(loaded, { cycles: cycles.after, latestPosting, postingCount, chain }, change);
    return { slot, latestPosting };
  }

  saveClock({ at, sequence }: IdPosition): void {
    this.#saveClock.run(at, sequence, clockChecksum(at, sequence));
  }

  noteKeyUses(ids: readonly number[], at: Instant): void {
    this.#noteKeyUses.run(at, JSON.stringify(ids));
  }

  readClock(): IdPosition {
    const row = this.db.prepare('SELECT at, sequence, checksum FROM clock').get();
    if (row === undefined) {
      if (this.#journal.lastPosting > 0) throw new CannotOpen('The ledger has lost its clock; restore a backup.');
      return { at: 0, sequence: 0 };
    }
    const kept = { at: Number(row.at), sequence: Number(row.sequence) };
    if (row.checksum !== clockChecksum(kept.at, kept.sequence)) {
      throw new CannotOpen(
        'The clock of the ledger was changed by other means than Scrip; run `scrip verify` and restore a backup.',
      );
    }
    return kept;
  }
}

export function clockChecksum(at: Instant, sequence: number): number {
  return crc32(`${at}/${sequence}`);
}
