// Computes the states of an end user at past instants, from snapshots and the postings after them. Runs in steps,
// because computing the states at a thousand instants of a long history would block the thread. Each step yields its
// cost.

import assert from 'node:assert/strict';
import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState, sizeOf } from '../../../ledger/state.ts';
import { lastIdAt, type TransactionId } from '../../../ledger/transaction-id.ts';
import type { PostingReader } from './posting-reader.ts';
import type { Snapshot, SnapshotReader } from './snapshots.ts';

/** The number of postings that are read or applied in one step. */
const STEP_POSTINGS = 512;

/** The duration of a step, measured as the number of cycles that could be read in the same time. */
type Cost = number;

/** The cost of finding the last posting at or before an instant. The search takes 0.1 ms. */
const FINDING: Cost = 80;
const READING: Cost = 2;
/**
 * The cost of applying a posting to a state of up to `FOLDED_AT_ONCE` cycles and holds. For a larger state, the cost
 * grows with its size.
 */
const FOLDING: Cost = 1;
const FOLDED_AT_ONCE = 256;

export class PastStates {
  readonly #postings: PostingReader;
  readonly #snapshots: SnapshotReader;

  constructor(postings: PostingReader, snapshots: SnapshotReader) {
    this.#postings = postings;
    this.#snapshots = snapshots;
  }

  /**
   * For each instant, returns the state after the last transaction at or before that instant. Instants without a
   * transaction between them share one state object.
   *
   * @param latest the latest posting that the caller can see
   * @param instants in ascending order
   */
  *at(user: EndUserKey, latest: number | null, instants: readonly Instant[]): Generator<Cost, EndUserState[]> {
    const places = yield* this.#placesOf(user, latest, instants);
    const states: EndUserState[] = [];
    let current: Snapshot & { readonly id: TransactionId | null } = { posting: 0, state: EMPTY_STATE, id: null };
    for (const [index, place] of places.entries()) {
      const id = lastIdAt(instants[index] as Instant);
      if (place !== null && place > current.posting) {
        const snapshot = this.#snapshots.between(user, current.id, id);
        // Ignore a snapshot that includes postings after `place`, because the caller cannot see those postings.
        const isNearer = snapshot !== null && snapshot.posting > current.posting && snapshot.posting <= place;
        const { posting, state } = isNearer ? snapshot : current;
        current = { posting: place, state: yield* this.#folded(user, { posting, state }, place), id };
      }
      states.push(current.state);
    }
    return states;
  }

  /**
   * Finds the last posting at or before each instant. Begins with the last instant, so that the search for each earlier
   * instant can start where the previous search ended.
   */
  *#placesOf(
    user: EndUserKey,
    latest: number | null,
    instants: readonly Instant[],
  ): Generator<Cost, (number | null)[]> {
    const places: (number | null)[] = [];
    let place = latest;
    for (const instant of instants.toReversed()) {
      if (place !== null) place = this.#snapshots.postingOf(user, place, lastIdAt(instant));
      places.push(place);
      yield FINDING;
    }
    return places.reverse();
  }

  *#folded(user: EndUserKey, { posting: after, state }: Snapshot, through: number): Generator<Cost, EndUserState> {
    const postings: Posting[] = [];
    let last = through;
    for (const { number, posting } of this.#postings.backwards(through, user)) {
      last = number;
      if (number <= after) break;
      postings.push(posting);
      if (postings.length % STEP_POSTINGS === 0) yield READING * STEP_POSTINGS;
    }
    assert(after === 0 || last <= after, 'the links to previous postings reach the posting of the snapshot');
    yield READING * (postings.length % STEP_POSTINGS);
    postings.reverse();
    let current = state;
    for (let at = 0; at < postings.length; at += STEP_POSTINGS) {
      const part = postings.slice(at, at + STEP_POSTINGS);
      current = liveState(applyAll(current, part), (part.at(-1) as Posting).createdAt);
      yield FOLDING * part.length * Math.ceil(sizeOf(current) / FOLDED_AT_ONCE);
    }
    return current;
  }
}
