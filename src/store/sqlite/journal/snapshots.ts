// Snapshots in a ledger file: where the state of an end user at an earlier instant is folded from, and where a place far
// back among its postings is found.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { stateOfText } from '../../state-text.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';

export interface Snapshot {
  /** The last posting that it counts. */
  readonly posting: number;
  readonly state: EndUserState;
}

/** Ids ascend along the postings of an end user, since its times never go backwards. */
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
    // In SQL, since a row that is only passed costs less there. The links lead backwards, or the walk ends.
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

  /** The latest one of the transactions before `id`; null when there is none. */
  before({ account, endUser }: EndUserKey, id: TransactionId): Snapshot | null {
    const row = this.#before.get(account, bytesOf(endUser), bytesOf(id));
    return row === undefined ? null : { posting: Number(row[0]), state: stateOfText(row[1] as string) };
  }

  /**
   * @param latest the latest posting of the end user that the caller sees: later ones are passed over
   * @returns the latest posting of the transaction `last`, or else of the one before it; null when there is none
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
