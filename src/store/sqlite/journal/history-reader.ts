// Reads the state of an end user at earlier instants: a snapshot, with the postings after it applied.

import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Recorded } from '../../../ledger/history.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { EMPTY_STATE, type EndUserState } from '../../../ledger/state.ts';
import { firstIdAt, type TransactionId } from '../../../ledger/transaction-id.ts';
import type { NumberedPosting, PostingReader } from './posting-reader.ts';
import type { SnapshotReader } from './snapshots.ts';

export class HistoryReader {
  readonly #postings: PostingReader;
  readonly #snapshots: SnapshotReader;

  constructor(postings: PostingReader, snapshots: SnapshotReader) {
    this.#postings = postings;
    this.#snapshots = snapshots;
  }

  /**
   * The postings from `since` on, and the state before them. If there are more than `max` postings, only the latest, in
   * whole transactions.
   *
   * @param latest the latest posting of the end user that the caller sees
   */
  since(user: EndUserKey, latest: number | null, since: Instant, max: number): Recorded & { readonly since: Instant } {
    const newest: NumberedPosting[] = [];
    let before: NumberedPosting | null = null;
    for (const each of this.#postings.backwards(latest, user)) {
      const previous = newest.at(-1);
      const isWithin = previous?.posting.transactionId === each.posting.transactionId;
      if (each.posting.createdAt < since || (newest.length >= max && !isWithin)) {
        before = each;
        break;
      }
      newest.push(each);
    }
    const oldest = newest.at(-1)?.posting;
    const state = this.#stateAt(user, before?.number ?? null, oldest?.transactionId ?? firstIdAt(since));
    const isCut = before !== null && before.posting.createdAt >= since;
    const postings = newest.map(({ posting }) => posting).reverse();
    return { state, postings, since: isCut && oldest ? oldest.createdAt : since };
  }

  /**
   * The state after a posting, which must be the last one of its transaction.
   *
   * @param posting null for the state before the first posting
   * @param before the id of the next transaction, or an id between the two transactions
   */
  #stateAt(user: EndUserKey, posting: number | null, before: TransactionId): EndUserState {
    if (posting === null) return EMPTY_STATE;
    const snapshot = this.#snapshots.before(user, before) ?? { posting: 0, state: EMPTY_STATE };
    const postings = this.#postings.after(snapshot.posting, posting, user);
    return applyAll(
      snapshot.state,
      postings.map((each) => each.posting),
    );
  }
}
