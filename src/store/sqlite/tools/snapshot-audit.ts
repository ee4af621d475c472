// Checks the snapshots in a ledger file during an audit.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { rowsDiffer } from '../../tools/ledger-tools.ts';
import { SnapshotFold } from '../../tools/snapshot-fold.ts';
import { wholeTransactions } from '../../transaction-history.ts';
import { numberOf, prepare, type Statement } from '../file/statements.ts';
import { bytesOf, uuidOf } from '../file/uuid.ts';

export class SnapshotAudit {
  readonly #ofEndUser: Statement;
  readonly #db: DatabaseSync;
  readonly #fault: (sentence: string) => void;
  #checked = 0;

  /** @param fault called with a sentence for each wrong snapshot */
  constructor(db: DatabaseSync, fault: (sentence: string) => void) {
    this.#fault = fault;
    this.#ofEndUser = prepare(
      db,
      `SELECT s.transaction_id, s.state, p.transaction_id FROM snapshots AS s LEFT JOIN postings AS p USING (posting)
       WHERE s.account = ? AND s.end_user = ? ORDER BY s.transaction_id`,
    );
    this.#db = db;
  }

  /**
   * Yields `postings` unchanged. Reports each of the end user's snapshots that differs from the state computed from the
   * postings.
   */
  *check(user: EndUserKey, postings: Iterable<Posting>): Generator<Posting> {
    const fold = new SnapshotFold(this.#snapshotsOf(user));
    for (const transaction of wholeTransactions(postings, ({ transactionId }) => transactionId)) {
      fold.add(transaction);
      yield* transaction;
    }
    for (const transactionId of fold.end()) this.#wrong(user, transactionId);
  }

  /** Reports snapshots that belong to no end user. Call `end` after `check` has been called for every end user. */
  end(): void {
    const stored = numberOf(this.#db, 'SELECT count(*) FROM snapshots');
    if (stored !== this.#checked)
      this.#fault(rowsDiffer('stored snapshots', stored, 'snapshots that belong to an end user', this.#checked));
  }

  #wrong({ account, endUser }: EndUserKey, transactionId: string): void {
    const owner = `account ${account}, end user ${endUser}`;
    this.#fault(`the snapshot after transaction ${transactionId} does not match the postings of ${owner}`);
  }

  #snapshotsOf(user: EndUserKey): Map<TransactionId, string> {
    const snapshots = new Map<TransactionId, string>();
    for (const row of this.#ofEndUser.all(user.account, bytesOf(user.endUser))) {
      const [id, state, posted] = row;
      const transactionId = uuidOf(id as Uint8Array);
      this.#checked += 1;
      // A snapshot must refer to a posting of its own transaction.
      if (posted === null || uuidOf(posted as Uint8Array) !== transactionId) this.#wrong(user, transactionId);
      if (state !== null) snapshots.set(transactionId, state as string);
    }
    return snapshots;
  }
}
