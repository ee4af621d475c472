// Computes the states of an end user at past instants from snapshots and postings. Postings never change, so they can
// be read in several steps, and the process can do other work between the steps.

import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../../../ledger/state.ts';
import { firstIdAt, instantOf, lastIdAt, type TransactionId } from '../../../ledger/transaction-id.ts';
import { stateOfText } from '../../state-text.ts';
import { prepared, type QueryResult } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { keyOf, OF_END_USER } from '../rows/key.ts';
import { POSTING_COLUMNS, postingOf } from '../rows/ledger-rows.ts';

/**
 * The limits of one step: the number of ranges (see `PostingRange`), and the number of postings to read from each
 * range. Most ranges have a few hundred postings, and a thousand postings are applied in 3 ms. In a history of a
 * million postings, computing the states at a thousand instants takes about a second.
 */
const RANGES_PER_STEP = 4;
const POSTINGS_PER_STEP = 500;

/**
 * For each ID in `$4`, in the order of `$4`, selects the latest snapshot at or before this ID; null if there is none.
 */
const SNAPSHOTS = prepared(
  'snapshots_before',
  `SELECT s.transaction_id FROM unnest($4::uuid[]) WITH ORDINALITY AS k (until, place) LEFT JOIN LATERAL (
     SELECT transaction_id FROM scrip.snapshots WHERE ${OF_END_USER} AND transaction_id <= k.until
     ORDER BY transaction_id DESC LIMIT 1
   ) AS s ON true ORDER BY k.place`,
);

const SNAPSHOT = prepared('snapshot', `SELECT state FROM scrip.snapshots WHERE ${OF_END_USER} AND transaction_id = $4`);

/**
 * Selects the first `$6` postings after transaction `$4` and up to transaction `$5`, and the remaining postings of the
 * last selected transaction.
 */
const POSTINGS = prepared(
  'postings_between',
  `SELECT ${POSTING_COLUMNS} FROM (
     SELECT ${POSTING_COLUMNS}, line FROM scrip.postings
     WHERE ${OF_END_USER} AND transaction_id > $4 AND transaction_id <= $5
     ORDER BY transaction_id FETCH FIRST ($6) ROWS WITH TIES
   ) AS next ORDER BY transaction_id, line`,
);

/** Consecutive instants whose states are computed from the same snapshot. */
interface PostingRange {
  /** Null if there is no snapshot at or before these instants. */
  readonly snapshot: TransactionId | null;
  /** The last possible transaction ID at each instant, in ascending order. */
  readonly ids: TransactionId[];
}

/**
 * For each instant, returns the state after the last transaction at or before that instant.
 *
 * @param instants in ascending order; all of the end user's writes up to the last instant must be committed
 */
export async function statesBefore(
  pool: ConnectionPool,
  user: EndUserKey,
  instants: readonly Instant[],
): Promise<readonly EndUserState[]> {
  const states: EndUserState[] = [];
  const ranges = await rangesOf(pool, user, instants.map(lastIdAt));
  for (let from = 0; from < ranges.length; from += RANGES_PER_STEP) {
    const folds = ranges.slice(from, from + RANGES_PER_STEP).map((range) => new PostingRangeFold(user, range));
    const results = await pool.send(folds.flatMap((fold) => [fold.snapshotQuery, fold.postingsQuery]));
    for (const [index, fold] of folds.entries()) {
      fold.begin(results[2 * index] as QueryResult);
      fold.add(results[2 * index + 1] as QueryResult);
      while (fold.isMore) fold.add((await pool.send([fold.postingsQuery]))[0] as QueryResult);
      states.push(...fold.end());
    }
  }
  return states;
}

async function rangesOf(
  pool: ConnectionPool,
  user: EndUserKey,
  ids: TransactionId[],
): Promise<readonly PostingRange[]> {
  if (ids.length === 0) return [];
  const snapshots = await pool.rows(SNAPSHOTS([...keyOf(user), `{${ids}}`]));
  const ranges: PostingRange[] = [];
  for (const [index, id] of ids.entries()) {
    const snapshot = snapshots[index]?.[0] ?? null;
    const latest = ranges.at(-1);
    if (latest !== undefined && latest.snapshot === snapshot) latest.ids.push(id);
    else ranges.push({ snapshot, ids: [id] });
  }
  return ranges;
}

class PostingRangeFold {
  readonly #key: ReturnType<typeof keyOf>;
  readonly #range: PostingRange;
  readonly #states: EndUserState[] = [];
  #state = EMPTY_STATE;
  #through: TransactionId;
  isMore = true;

  constructor(user: EndUserKey, range: PostingRange) {
    this.#key = keyOf(user);
    this.#range = range;
    this.#through = range.snapshot ?? firstIdAt(0);
  }

  get snapshotQuery() {
    return SNAPSHOT([...this.#key, this.#range.snapshot]);
  }

  get postingsQuery() {
    return POSTINGS([...this.#key, this.#through, this.#range.ids.at(-1) as TransactionId, POSTINGS_PER_STEP]);
  }

  /** @param snapshot the result of `snapshotQuery` */
  begin({ rows: [row] }: QueryResult): void {
    if (row !== undefined) this.#state = stateOfText(row[0] as string);
  }

  /** @param postings the result of `postingsQuery` */
  add({ rows }: QueryResult): void {
    let waiting: Posting[] = [];
    for (const posting of rows.map((row) => postingOf(row))) {
      while (posting.transactionId > (this.#next as TransactionId)) waiting = this.#reach(waiting);
      waiting.push(posting);
    }
    this.#through = waiting.at(-1)?.transactionId ?? this.#through;
    this.#state = liveState(applyAll(this.#state, waiting), instantOf(this.#through));
    this.isMore = rows.length >= POSTINGS_PER_STEP;
  }

  end(): readonly EndUserState[] {
    while (this.#next !== undefined) this.#reach([]);
    return this.#states;
  }

  get #next(): TransactionId | undefined {
    return this.#range.ids[this.#states.length];
  }

  #reach(postings: readonly Posting[]): Posting[] {
    this.#state = applyAll(this.#state, postings);
    this.#states.push(this.#state);
    return [];
  }
}
