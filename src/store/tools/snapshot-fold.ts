// Checks the snapshots of an end user against the end user's postings.

import { applyAll } from '../../ledger/apply.ts';
import { InvariantViolation } from '../../ledger/invariant.ts';
import type { Posting } from '../../ledger/posting.ts';
import { EMPTY_STATE, liveState } from '../../ledger/state.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { stateText } from '../state-text.ts';

export class SnapshotFold {
  /** The snapshots that are not checked yet. When all snapshots have been checked, further transactions are ignored. */
  readonly #unchecked: Map<TransactionId, string>;
  readonly #wrong: TransactionId[] = [];
  #state = EMPTY_STATE;

  /** @param snapshots the end user's snapshots as text; the key is the ID of the last transaction in the snapshot */
  constructor(snapshots: ReadonlyMap<TransactionId, string>) {
    this.#unchecked = new Map(snapshots);
  }

  /**
   * Ignores invariant violations, because the audit reports them.
   *
   * @param transaction the next transaction of the end user, starting with the first one
   */
  add(transaction: readonly [Posting, ...Posting[]]): void {
    if (this.#unchecked.size === 0) return;
    const [{ transactionId, createdAt }] = transaction;
    try {
      this.#state = liveState(applyAll(this.#state, transaction), createdAt);
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
    }
    const stored = this.#unchecked.get(transactionId);
    this.#unchecked.delete(transactionId);
    if (stored !== undefined && stored !== stateText(this.#state, createdAt)) this.#wrong.push(transactionId);
  }

  /** @returns the transactions whose snapshots do not match the postings */
  end(): readonly TransactionId[] {
    return [...this.#wrong, ...this.#unchecked.keys()];
  }
}
