// Writes the balances of an end user back to the file: its new and changed cycles, and the row of the end user itself.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Cycle } from '../../../ledger/cycle.ts';
import { cycleChanges } from '../../../ledger/state.ts';
import { ManyRows } from '../file/many-rows.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { UuidParameter } from '../file/uuid.ts';
import { type Balances, END_OF_TIME } from './end-user-reader.ts';

export class BalanceWriter {
  readonly #insertCycles: ManyRows;
  readonly #setRemaining: Statement;
  readonly #setStatus: Statement;
  readonly #setPeriod: Statement;
  readonly #insertEndUser: Statement;
  readonly #setLatestPosting: Statement;
  readonly #endUser = new UuidParameter();
  readonly #cycle = new UuidParameter();

  constructor(db: DatabaseSync) {
    this.#insertCycles = new ManyRows(
      db,
      11,
      (rows) =>
        `INSERT INTO balances (account, end_user, cycle_id, period, type, status, amount, remaining, starts_at, ends_at, validity_days)
         VALUES ${rows}`,
    );
    // Three statements: setting `status` or `ends_at` would update the indexes of active cycles even if only credits
    // are spent.
    const key = 'WHERE account = ? AND end_user = ? AND ends_at = ? AND cycle_id = ?';
    this.#setRemaining = prepare(db, `UPDATE balances SET remaining = ? ${key}`);
    this.#setStatus = prepare(db, `UPDATE balances SET remaining = ?, status = ? ${key}`);
    this.#setPeriod = prepare(
      db,
      `UPDATE balances SET remaining = ?, status = ?, period = ?, amount = ?, starts_at = ?, ends_at = ? ${key}`,
    );
    this.#insertEndUser = prepare(
      db,
      `INSERT INTO balances (latest_posting, account, end_user, ends_at, cycle_id, type)
       VALUES (?, ?, ?, ${END_OF_TIME}, x'', 'end-user')`,
    );
    this.#setLatestPosting = prepare(
      db,
      `UPDATE balances SET latest_posting = ? WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`,
    );
  }

  /**
   * Other statements see new cycles only after `flush`.
   *
   * @param stored the balances in the file
   * @param current the balances to write, with all cycles of `stored`
   */
  write(user: EndUserKey, stored: Balances, current: Balances): void {
    if (current.latestPosting === stored.latestPosting) return;
    const { opened, changed } = cycleChanges(stored.state, current.state);
    // A stopped cycle must leave the unique index of active cycles before another one is inserted.
    for (const { before, after } of changed) this.#change(user, before, after);
    for (const cycle of opened) this.insertCycle(user, cycle);
    const statement = stored.latestPosting === null ? this.#insertEndUser : this.#setLatestPosting;
    const { changes } = statement.run(current.latestPosting, user.account, this.#endUser.of(user.endUser));
    assert(changes === 1, 'an end user has one row of its own');
  }

  insertCycle({ account, endUser }: EndUserKey, cycle: Cycle): void {
    const { id, period, type, status, amount, remaining, start, end, validityDays } = cycle;
    const rows = this.#insertCycles;
    const [user, cycleId] = [rows.uuid(endUser), rows.uuid(id)];
    rows.add(account, user, cycleId, period, type, status, amount, remaining, start, end, validityDays);
  }

  flush(): void {
    this.#insertCycles.flush();
  }

  #change({ account, endUser }: EndUserKey, before: Cycle, after: Cycle): void {
    const key = [account, this.#endUser.of(endUser), before.end, this.#cycle.of(before.id)] as const;
    const { remaining, status, period, amount, start, end } = after;
    const { changes } =
      period !== before.period
        ? this.#setPeriod.run(remaining, status, period, amount, start, end, ...key)
        : status !== before.status
          ? this.#setStatus.run(remaining, status, ...key)
          : this.#setRemaining.run(remaining, ...key);
    assert(changes === 1, 'a loaded cycle is stored');
  }
}
