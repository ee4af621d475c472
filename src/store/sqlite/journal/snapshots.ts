// Reads the snapshots of a ledger file. Scrip uses snapshots to compute past states and to find old postings.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { stateOfText } from '../../state-text.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';

export interface Snapshot {
  /** The last posting that the snapshot includes. */
  readonly posting: number;
  readonly state: EndUserState;
}

/** An empty blob sorts before all IDs. */
const NO_BYTES = new Uint8Array();

/**
 * Relies on the order of transaction IDs: the transaction IDs of an end user ascend in the journal, because the
 * ledger's clock never goes backwards.
 */
export class SnapshotReader {
  readonly #between: Statement;
  readonly #notBefore: Statement;
  readonly #walk: Statement;

  constructor(db: DatabaseSync) {
    const own = 'FROM snapshots WHERE account = ? AND end_user = ?';
    this.#between = prepare(
      db,
      `SELECT posting, state ${own} AND transaction_id > ? AND transaction_id <= ? AND state IS NOT NULL
       ORDER BY transaction_id DESC LIMIT 1`,
    );
    this.#notBefore = prepare(db, `SELECT posting ${own} AND transaction_id >= ? ORDER BY transaction_id LIMIT 1`);
    // Follows the links in SQL, where skipping a row costs less than in JavaScript. Stops at a link that does not lead
    // backwards.
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

  /** Returns the latest snapshot whose transaction ID is above `after` and at most `last`; null if there is none. */
  between({ account, endUser }: EndUserKey, after: TransactionId | null, last: TransactionId): Snapshot | null {
    const row = this.#between.get(account, bytesOf(endUser), after === null ? NO_BYTES : bytesOf(after), bytesOf(last));
    return row === undefined ? null : { posting: Number(row[0]), state: stateOfText(row[1] as string) };
  }

  /**
   * @param latest the latest posting that the caller can see
   * @returns the latest posting up to `latest` whose transaction ID is at most `last`; null if there is none
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
