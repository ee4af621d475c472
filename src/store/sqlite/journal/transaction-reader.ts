// Finds a transaction of an end user by transaction ID, and the refunds of that transaction.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Referenced } from '../../../ledger/decide-refund.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { prepare, type Statement } from '../file/statements.ts';
import { bytesOf } from '../file/uuid.ts';
import { PostingReader } from './posting-reader.ts';
import { postingColumns, postingOf } from './posting-rows.ts';
import { SnapshotReader } from './snapshots.ts';

export class TransactionReader {
  readonly #postings: PostingReader;
  readonly #snapshots: SnapshotReader;
  readonly #refunds: Statement;

  /** @param options the options of `PostingReader` */
  constructor(db: DatabaseSync, options: { anyInteger?: boolean } = {}) {
    this.#postings = new PostingReader(db, options);
    this.#snapshots = new SnapshotReader(db);
    this.#refunds = prepare(
      db,
      `SELECT ${postingColumns('p')} FROM postings AS p
       WHERE p.account = ? AND p.end_user = ? AND p.reference = ? AND p.kind = 'refund' ORDER BY p.posting`,
    );
  }

  /** @param latest the latest posting that the caller can see */
  find(user: EndUserKey, latest: number | null, id: TransactionId): Referenced | null {
    const postings = this.postingsOf(user, latest, id);
    return postings.length === 0 ? null : { postings, refunds: this.refundsOf(user, id) };
  }

  /** Returns the postings of a transaction in the order in which they were written; empty if the ID is unknown. */
  postingsOf(user: EndUserKey, latest: number | null, id: TransactionId): readonly Posting[] {
    const found: Posting[] = [];
    for (const { posting } of this.#postings.backwards(this.#snapshots.postingOf(user, latest, id), user)) {
      if (posting.transactionId !== id) break;
      found.push(posting);
    }
    return found.reverse();
  }

  refundsOf({ account, endUser }: EndUserKey, id: TransactionId): readonly Posting[] {
    return this.#refunds.all(account, bytesOf(endUser), bytesOf(id)).map(postingOf);
  }
}
