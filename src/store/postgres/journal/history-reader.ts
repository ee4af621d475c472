// Reads the state of an end user at earlier instants: loads a snapshot and applies the postings after it.

import { applyAll } from '../../../ledger/apply.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { Recorded } from '../../../ledger/history.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { EMPTY_STATE, type EndUserState } from '../../../ledger/state.ts';
import { firstIdAt, lastIdAt, type TransactionId } from '../../../ledger/transaction-id.ts';
import { stateOfText } from '../../state-text.ts';
import { prepared } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';
import { keyOf, OF_END_USER } from '../rows/key.ts';
import { POSTING_COLUMNS, postingOf } from '../rows/ledger-rows.ts';

const POSTINGS = `SELECT ${POSTING_COLUMNS} FROM scrip.postings WHERE ${OF_END_USER}`;

const LATEST = prepared(
  'latest_postings',
  `${POSTINGS} AND transaction_id BETWEEN $4 AND $5 ORDER BY transaction_id DESC LIMIT $6`,
);

const BETWEEN = prepared(
  'postings_between',
  `${POSTINGS} AND transaction_id > $4 AND transaction_id < $5 ORDER BY transaction_id`,
);

const SNAPSHOT = prepared(
  'snapshot',
  `SELECT transaction_id, state FROM scrip.snapshots WHERE ${OF_END_USER} AND transaction_id < $4
   ORDER BY transaction_id DESC LIMIT 1`,
);

/**
 * Reads the postings from `since` to `now`, and the state before them. If there are more than `max` postings, only the
 * latest are returned, in whole transactions. Postings never change, so the state can be read after them.
 */
export async function recordedSince(
  pool: ConnectionPool,
  user: EndUserKey,
  { since, now, max }: { readonly since: Instant; readonly now: Instant; readonly max: number },
): Promise<Recorded & { readonly since: Instant }> {
  const rows = await pool.rows(LATEST([...keyOf(user), firstIdAt(since), lastIdAt(now), max + 1]));
  const latest = rows.map((row) => postingOf(row));
  // If there are more than `max` postings, some postings of the oldest transaction may be missing.
  const cut = latest.length > max ? (latest.at(-1)?.transactionId ?? null) : null;
  const postings = latest.filter(({ transactionId }) => transactionId !== cut).reverse();
  const [first] = postings;
  const before = first?.transactionId ?? (cut === null ? firstIdAt(since) : lastIdAt(now));
  const state = await stateBefore(pool, user, before);
  return { state, postings, since: cut === null ? since : (first?.createdAt ?? now) };
}

/** The state after all transactions whose ids sort before `id`. */
async function stateBefore(pool: ConnectionPool, user: EndUserKey, id: TransactionId): Promise<EndUserState> {
  const key = keyOf(user);
  const [snapshot] = await pool.rows(SNAPSHOT([...key, id]));
  const state = snapshot === undefined ? EMPTY_STATE : stateOfText(snapshot[1] as string);
  const rows = await pool.rows(BETWEEN([...key, snapshot?.[0] ?? firstIdAt(0), id]));
  return applyAll(
    state,
    rows.map((row) => postingOf(row)),
  );
}
