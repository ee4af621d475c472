// Writes the holdings of an end user: its cycles, and its own row, which says up to which posting they count.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { ManyRows } from './many-rows.ts';
import { END_OF_TIME, type Holdings, prepare } from './rows.ts';
import { UuidParameter } from './uuid.ts';
import type { Difference } from './waiting-holdings.ts';

/** What an end user's own row holds. */
type OwnRow = Omit<Holdings, 'cycles'>;

export class HoldingsWriter {
  readonly #cycles: ManyRows;
  /** Periods that another has followed, as nothing but time has changed them. */
  readonly #renewed: ManyRows;
  readonly #setRemaining: StatementSync;
  readonly #setStatus: StatementSync;
  readonly #insertEndUser: StatementSync;
  readonly #setLatestPosting: StatementSync;
  readonly #endUser = new UuidParameter();
  readonly #cycle = new UuidParameter();

  constructor(db: DatabaseSync) {
    this.#cycles = new ManyRows(
      db,
      11,
      (rows) =>
        `INSERT INTO holdings (account, end_user, cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days)
         VALUES ${rows}`,
    );
    this.#renewed = new ManyRows(
      db,
      4,
      (rows) =>
        `UPDATE holdings SET status = 'renewed' WHERE (account, end_user, ends_at, cycle_id) IN (VALUES ${rows})`,
    );
    // Two statements: naming `status` would touch the two indexes of active cycles each time credits are spent.
    const one = 'WHERE account = ? AND end_user = ? AND ends_at = ? AND cycle_id = ?';
    this.#setRemaining = prepare(db, `UPDATE holdings SET remaining = ? ${one}`);
    this.#setStatus = prepare(db, `UPDATE holdings SET remaining = ?, status = ? ${one}`);
    this.#insertEndUser = prepare(
      db,
      `INSERT INTO holdings (latest_posting, posting_count, chain, account, end_user, ends_at, cycle_id, type)
       VALUES (?, ?, ?, ?, ?, ${END_OF_TIME}, x'', 'end-user')`,
    );
    this.#setLatestPosting = prepare(
      db,
      `UPDATE holdings SET latest_posting = ?, posting_count = ?, chain = ?
       WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`,
    );
  }

  /**
   * What is renewed, and what is new, is there for who reads it behind the next `flush`.
   *
   * @param current the cycles of `stored`, each in its place, then those that are new
   */
  write(user: EndUserKey, stored: Holdings, current: Holdings): void {
    if (current.latestPosting === stored.latestPosting) return;
    this.#change(user, stored.cycles, current.cycles);
    for (const cycle of current.cycles.slice(stored.cycles.length)) this.#addCycle(user, cycle);
    this.#writeEndUser(stored.latestPosting === null ? this.#insertEndUser : this.#setLatestPosting, user, current);
  }

  /** The same for cycles of which no more has changed than what remains in them; what is new is there behind a `flush`. */
  bring(user: EndUserKey, { spent, opened, own }: Difference): void {
    for (const cycle of spent) this.#setRemainingOf(user, cycle);
    for (const cycle of opened) this.#addCycle(user, cycle);
    this.#writeEndUser(this.#setLatestPosting, user, own);
  }

  insertCycle(user: EndUserKey, cycle: Cycle): void {
    this.#addCycle(user, cycle);
    this.flush();
  }

  /** Writes what `write` left to be written together: a renewed period makes room in the index of active cycles first. */
  flush(): void {
    this.#renewed.flush();
    this.#cycles.flush();
  }

  #addCycle({ account, endUser }: EndUserKey, cycle: Cycle): void {
    const { id, period, type, status, amount, remaining, start, end, validityDays } = cycle;
    const [user, bytes] = [this.#cycles.uuid(endUser), this.#cycles.uuid(id)];
    this.#cycles.add(account, user, bytes, period, type, status, amount, remaining, start, end, validityDays);
    if (this.#cycles.isFull) this.flush();
  }

  #setRenewed({ account, endUser }: EndUserKey, { id, end }: Cycle): void {
    const [user, bytes] = [this.#renewed.uuid(endUser), this.#renewed.uuid(id)];
    this.#renewed.add(account, user, end, bytes);
    if (this.#renewed.isFull) this.#renewed.flush();
  }

  /** The row of an end user that has none. */
  insertEndUser(user: EndUserKey, own: OwnRow): void {
    this.#writeEndUser(this.#insertEndUser, user, own);
  }

  #writeEndUser(statement: StatementSync, { account, endUser }: EndUserKey, own: OwnRow): void {
    const user = this.#endUser.of(endUser);
    const { changes } = statement.run(own.latestPosting, own.postingCount, own.chain, account, user);
    assert(changes === 1, 'an end user has one row of its own');
  }

  #change(user: EndUserKey, stored: readonly Cycle[], current: readonly Cycle[]): void {
    stored.forEach((before, place) => {
      const after = current[place] as Cycle;
      assert(after.id === before.id && after.period === before.period, 'a cycle keeps its place');
      if (after === before) return;
      if (before.status === after.status) this.#setRemainingOf(user, after);
      else if (after.status === 'renewed' && before.remaining === after.remaining) this.#setRenewed(user, after);
      else this.#setStatusOf(user, after);
    });
  }

  #setRemainingOf({ account, endUser }: EndUserKey, { id, remaining, end }: Cycle): void {
    const user = this.#endUser.of(endUser);
    const { changes } = this.#setRemaining.run(remaining, account, user, end, this.#cycle.of(id));
    assert(changes === 1, 'a cycle that was loaded is there to be changed');
  }

  #setStatusOf({ account, endUser }: EndUserKey, { id, remaining, status, end }: Cycle): void {
    const user = this.#endUser.of(endUser);
    const { changes } = this.#setStatus.run(remaining, status, account, user, end, this.#cycle.of(id));
    assert(changes === 1, 'a cycle that was loaded is there to be changed');
  }
}
