// Reads the snapshots of a ledger file. They shorten the way to the state of an end user at an earlier instant, and to
// its old postings.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { stateOfText } from '../../state-text.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';

export interface Snapshot {
  /** The last posting that the snapshot counts. */
  readonly posting: number;
  readonly state: EndUserState;
}

/** Relies on the order of ids: the times of an end user never go backwards, so its ids ascend. */
export class SnapshotReader {
  readonly #before: Statement;
  readonly #notBefore: Statement;
  readonly #walk: Statement;

  constructor(db: DatabaseSync) {
    const own = 'FROM snapshots WHERE account = ? AND end_user = ?';
    this.#before = prepare(
      db,
      `SELECT posting, state ${own} AND transaction_id < ? ORDER BY transaction_id DESC LIMIT 1`,
    );
    this.#notBefore = prepare(db, `SELECT posting ${own} AND transaction_id >= ? ORDER BY transaction_id LIMIT 1`);
    // Walks in SQL, where a skipped row costs less. The walk ends if a link does not lead backwards.
    this.#walk = prepare(
      db,
      `WITH RECURSIVE walk (posting, previous, transaction_id) AS (
         SELECT posting, previous, transaction_id FROM postings WHERE posting = ?1
         UNION ALL
         SELECT p.posting, p.previous, p.transaction_id FROM walk JOIN postings AS p ON p.posting = walk.previous
         WHERE walk.transaction_id > ?2 AND p.posting < walk.posting
       )
       SELECT posting FROM walk WHERE transaction_id <= ?2 LIMIT 1`,
    );
  }

  /** The latest snapshot of a transaction before `id`; null if there is none. */
  before({ account, endUser }: EndUserKey, id: TransactionId): Snapshot | null {
    const row = this.#before.get(account, bytesOf(endUser), bytesOf(id));
    return row === undefined ? null : { posting: Number(row[0]), state: stateOfText(row[1] as string) };
  }

  /**
   * @param latest the latest posting of the end user that the caller sees; later postings are skipped
   * @returns the last posting of the transaction `last`, or else of the transaction before it; null if there is none
   */
  postingOf({ account, endUser }: EndUserKey, latest: number | null, last: TransactionId): number | null {
    if (latest === null) return null;
    const id = bytesOf(last);
    const snapshot = this.#notBefore.get(account, bytesOf(endUser), id);
    const start = snapshot === undefined ? latest : Math.min(latest, Number(snapshot[0]));
    const found = this.#walk.get(start, id);
    return found === undefined ? null : Number(found[0]);
  }
}
