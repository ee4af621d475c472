// Writes the balances of an end user back to the file.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Cycle } from '../../../ledger/cycle.ts';
import { NEVER, nextEventAt } from '../../../ledger/next-event.ts';
import { scheduledText } from '../../../ledger/plan.ts';
import { cycleChanges } from '../../../ledger/state.ts';
import { cycleValues, holdsText } from '../../state-text.ts';
import { ManyRows } from '../file/many-rows.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { type Balances, END_OF_TIME } from './end-user-reader.ts';

export class BalanceWriter {
  readonly #insertCycles: ManyRows;
  readonly #setRemaining: Statement;
  readonly #setAll: Statement;
  readonly #insertEndUser: Statement;
  readonly #setLatestPosting: Statement;
  readonly #setHolds: Statement;
  readonly #endUser = new UuidParameter();
  readonly #cycle = new UuidParameter();

  constructor(db: DatabaseSync) {
    // `OR FAIL`: without it, SQLite would copy each changed page first, to undo a statement that fails halfway. If a
    // statement fails, the writer rolls back the whole transaction.
    this.#insertCycles = new ManyRows(
      db,
      13,
      (rows) =>
        `INSERT OR FAIL INTO balances (account, end_user, cycle_id, period, type, status, amount, remaining, held, starts_at, ends_at, plan, next)
         VALUES ${rows}`,
    );
    // An UPDATE that sets `status` or `ends_at` also updates the index of active cycles, even if the values stay the
    // same. Most changes therefore use `#setRemaining`.
    const key = 'WHERE account = ? AND end_user = ? AND ends_at = ? AND cycle_id = ?';
    this.#setRemaining = prepare(db, `UPDATE balances SET remaining = ?, held = ? ${key}`);
    this.#setAll = prepare(
      db,
      `UPDATE balances SET remaining = ?, held = ?, status = ?, period = ?, amount = ?, starts_at = ?, ends_at = ?, next = ? ${key}`,
    );
    this.#insertEndUser = prepare(
      db,
      `INSERT INTO balances (latest_posting, holds, due_at, account, end_user, ends_at, cycle_id, type)
       VALUES (?, ?, ?, ?, ?, ${END_OF_TIME}, x'', 'end-user')`,
    );
    // Most writes change neither the holds nor the next due instant, so `#setLatestPosting` leaves out these columns.
    const own = `WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`;
    this.#setLatestPosting = prepare(db, `UPDATE OR FAIL balances SET latest_posting = ? ${own}`);
    this.#setHolds = prepare(db, `UPDATE OR FAIL balances SET latest_posting = ?, holds = ?, due_at = ? ${own}`);
  }

  /**
   * Writes the balances of an end user. Other statements see new cycles only after `flush`.
   *
   * @param stored the balances in the file
   * @param current the balances to write; they still contain all cycles of `stored`
   */
  write(user: EndUserKey, stored: Balances, current: Balances): void {
    if (current.latestPosting === stored.latestPosting) return;
    const { opened, changed } = cycleChanges(stored.state, current.state);
    // Change cycles first: a stopped cycle must leave the unique index of active cycles before a new one is inserted.
    for (const { before, after } of changed) this.#change(user, before, after);
    for (const cycle of opened) this.insertCycle(user, cycle);
    const { changes } = this.#writeOwnRow(user, stored, current);
    assert(changes === 1, "an end user has exactly one row of type 'end-user'");
  }

  #writeOwnRow({ account, endUser }: EndUserKey, stored: Balances, { state, latestPosting }: Balances) {
    const key = [account, this.#endUser.of(endUser)] as const;
    const dueAt = nextEventAt(state);
    const isNew = stored.latestPosting === null;
    const isSame = state.holds === stored.state.holds && dueAt === nextEventAt(stored.state);
    if (isSame && !isNew) return this.#setLatestPosting.run(latestPosting, ...key);
    const statement = isNew ? this.#insertEndUser : this.#setHolds;
    return statement.run(latestPosting, holdsText(state.holds), dueAt === NEVER ? null : dueAt, ...key);
  }

  insertCycle({ account, endUser }: EndUserKey, cycle: Cycle): void {
    const [, period, type, status, amount, remaining, held, start, end, plan, next] = cycleValues(cycle);
    const rows = this.#insertCycles;
    const [user, cycleId] = [rows.uuid(endUser), rows.uuid(cycle.id)];
    rows.add(account, user, cycleId, period, type, status, amount, remaining, held, start, end, plan, next);
  }

  flush(): void {
    this.#insertCycles.flush();
  }

  #change({ account, endUser }: EndUserKey, before: Cycle, after: Cycle): void {
    const key = [account, this.#endUser.of(endUser), before.end, this.#cycle.of(before.id)] as const;
    const { remaining, held, status, period, amount, start, end } = after;
    const isOnlySpent = period === before.period && status === before.status && after.next === before.next;
    const { changes } = isOnlySpent
      ? this.#setRemaining.run(remaining, held, ...key)
      : this.#setAll.run(remaining, held, status, period, amount, start, end, scheduledText(after.next), ...key);
    assert(changes === 1, 'a cycle that was loaded has a row in the file');
  }
}
