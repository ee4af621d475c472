// The queue in the ledger file through which `scrip import` sends batches to a running server. An import has at most
// one batch in the queue.
//
//   queued ──server──▶ granted, with outcomes ──import──▶ replaced by the next batch
//      └── not granted in time ──import──▶ withdrawn

import type { DatabaseSync } from 'node:sqlite';
import type { Add, Outcome } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { StoreFault } from '../../store-fault.ts';
import { type ImportPart, importedByAnother, moveImport, stepValues } from '../../tools/ledger-import.ts';
import { prepare, type Row, runNumbered, type Statement } from '../file/statements.ts';

/**
 * How long an import waits for a server to process its batch, for example while the server restarts. If a batch has
 * been in the queue for longer, its import must have been killed. Servers ignore such a batch.
 */
export const QUEUED_MS_MAX = 10_000;

const MOVE = `${moveImport('main')} RETURNING 1`;

interface QueuedBatch {
  readonly part: ImportPart;
  readonly commands: readonly Add[];
}

export class ImportQueue {
  readonly #put: Statement;
  readonly #next: Statement;
  readonly #outcomes: Statement;
  readonly #withdraw: Statement;
  readonly #clear: Statement;

  constructor(db: DatabaseSync) {
    this.#put = prepare(
      db,
      'REPLACE INTO import_batches (import_id, from_row, to_row, queued_at, commands) VALUES (?, ?, ?, ?, ?)',
    );
    // Skips batches whose rows have already been imported.
    this.#next = prepare(
      db,
      `SELECT import_id, from_row, to_row, queued_at, commands FROM import_batches JOIN imports USING (import_id)
       WHERE outcomes IS NULL AND from_row = rows_done AND queued_at > ? ORDER BY queued_at LIMIT 1`,
    );
    this.#outcomes = prepare(
      db,
      `SELECT rows_done, outcomes FROM imports LEFT JOIN import_batches
       ON import_batches.import_id = imports.import_id AND from_row = ? WHERE imports.import_id = ?`,
    );
    this.#withdraw = prepare(
      db,
      'DELETE FROM import_batches WHERE import_id = ? AND from_row = ? AND outcomes IS NULL',
    );
    this.#clear = prepare(db, 'DELETE FROM import_batches WHERE (import_id = ? AND from_row = ?) OR queued_at <= ?');
  }

  put({ part: { id, from, to, at }, commands }: QueuedBatch): void {
    this.#put.run(id, from, to, at, JSON.stringify(commands));
  }

  next(now: Instant): QueuedBatch | null {
    const row = this.#next.get(now - QUEUED_MS_MAX);
    if (row === undefined) return null;
    const [id, from, to, at] = row.map(Number) as [number, number, number, number];
    return { part: { id, from, to, at }, commands: JSON.parse(row[4] as string) };
  }

  /**
   * Returns null if no server has processed the batch yet.
   *
   * @throws CannotOpen if another process has advanced the import
   */
  outcomes({ id, from, to }: ImportPart): readonly Outcome[] | null {
    const [done, outcomes] = this.#outcomes.get(from, id) as Row;
    if (done === from) return null;
    if (done !== to || outcomes === null) throw importedByAnother();
    return JSON.parse(outcomes as string);
  }

  withdraw({ id, from }: ImportPart): void {
    this.#withdraw.run(id, from);
  }

  /** Removes the batch of `part`, and all batches that are so old that servers ignore them. */
  clear({ id, from, at }: ImportPart): void {
    this.#clear.run(id, from, at - QUEUED_MS_MAX);
  }
}

/**
 * Records that the rows of `part` have been imported. Call this function in the transaction that grants the credits. If
 * the rows came from the queue, also stores their outcomes in the queue.
 *
 * @throws StoreFault if the grants must be rolled back: too many events are due, or the rows have already been imported
 */
export function advanceImport(db: DatabaseSync, part: ImportPart, outcomes: readonly (Outcome | null)[]): void {
  // A null outcome means that too many events are due. All due events were stored before this batch, but the clock
  // might have jumped forward in the meantime.
  if (outcomes.includes(null)) throw new StoreFault('StoreUnavailable', 'too many events became due during the import');
  const granted = outcomes.filter((outcome) => outcome?.refused === null).length;
  const moved = runNumbered(db, MOVE, stepValues({ ...part, granted }));
  // A server can process the same batch twice if it does not know yet that the first COMMIT succeeded.
  if (moved.length === 0) throw new StoreFault('StoreUnavailable', 'these rows have already been imported');
  const store = 'UPDATE import_batches SET outcomes = ? WHERE import_id = ? AND from_row = ?';
  db.prepare(store).run(JSON.stringify(outcomes), part.id, part.from);
}
