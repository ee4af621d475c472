// Reads the current state of an end user: the stored balances, with the pending postings applied. A batch appends its
// postings to the journal immediately, which dirties few pages. The balances are written later, together with those of
// neighboring end users in the file.
//
//   appended, durable, acknowledged ──▶ pending ──▶ flushed: the stored balances include the posting

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { applyAll } from '../../../ledger/apply.ts';
import { type EndUserKey, endUserText } from '../../../ledger/command.ts';
import {
  assertReadable,
  type Cycle,
  type CycleStatus,
  type CycleType,
  inSpendingOrder,
} from '../../../ledger/cycle.ts';
import type { Hold } from '../../../ledger/hold.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { planOfText, scheduledOfText } from '../../../ledger/plan.ts';
import { isOpening } from '../../../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState, sizeOf } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { holdsOfText } from '../../state-text.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { UuidParameter, uuidOf, uuidOfHex } from '../file/uuid.ts';
import { type NumberedPosting, PostingReader } from '../journal/posting-reader.ts';

/** An end user's state after one of its postings. */
export interface Balances {
  readonly state: EndUserState;
  /** Null for an end user without postings. */
  readonly latestPosting: number | null;
}

const OTHER_COLUMNS = 'period, type, status, amount, remaining, held, starts_at, ends_at, plan, next';
export const CYCLE_COLUMNS = `cycle_id, ${OTHER_COLUMNS}`;

/** The value of `ends_at` in rows of the type 'end-user', which therefore sort after the end user's cycles. */
export const END_OF_TIME = Number.MAX_SAFE_INTEGER;

/**
 * Replaces strings from SQLite with literals. V8 compares two literals by address, but other strings character by
 * character.
 */
const INTERNED = new Map<string, never>(
  ['one-time', 'recurring', 'active', 'canceled', 'superseded'].map((name) => [name, name as never]),
);

/** Does not check the cycle, so that the audit can report wrong values. All other callers check the cycle. */
export function cycleOf(row: Row): Cycle {
  const [id, period, type, status, amount, remaining, held, start, end, plan, next] = row;
  return {
    id: typeof id === 'string' ? uuidOfHex(id) : uuidOf(id as Uint8Array),
    period: Number(period),
    type: INTERNED.get(type as CycleType) ?? (type as CycleType),
    status: INTERNED.get(status as CycleStatus) ?? (status as CycleStatus),
    amount: Number(amount),
    remaining: Number(remaining),
    held: Number(held),
    start: Number(start),
    end: Number(end),
    plan: planOfText(plan as string),
    next: scheduledOfText(next as string | null),
  };
}

export interface Replayed {
  readonly stored: Balances;
  /** Includes all cycles of `stored`, even those that have ended. */
  readonly current: Balances;
}

/** States with at least this many cycles and holds are cached, because loading 10,000 cycles takes 10 ms. */
export const MANY_CYCLES = 256;
/** Maximum number of postings that are applied to a cached state. */
const CAUGHT_UP_MAX = 512;
/** Maximum number of cycles and holds in the cache of end users with many cycles. A cycle takes about 250 bytes. */
const KEPT_CYCLES_MAX = 200_000;

export class EndUserReader {
  readonly #balances: BalanceReader;
  readonly #postings: PostingReader;
  /** The cache of end users with many cycles, least recently used first. */
  readonly #kept = new Map<string, Balances>();
  #keptCycles = 0;

  constructor(db: DatabaseSync) {
    this.#balances = new BalanceReader(db);
    this.#postings = new PostingReader(db);
  }

  /** @param pending the latest posting if the stored balances might not include it; otherwise null */
  read(user: EndUserKey, pending: number | null, now: Instant): Balances {
    const kept = this.#take(user);
    const caughtUp = kept && this.#catchUp(user, kept, pending, now);
    if (caughtUp !== null) return this.#keep(user, caughtUp);
    const stored = this.#balances.read(user, now);
    if (pending === null || pending <= (stored.latestPosting ?? 0)) return this.#keep(user, stored);
    const postings = this.#pendingAfter(stored.latestPosting, pending, user);
    return this.#keep(user, foldedAt(now, stored, postings));
  }

  replay(user: EndUserKey, pending: number, now: Instant): Replayed {
    const latest = this.#balances.latestPosting(user);
    const postings = this.#pendingAfter(latest, pending, user);
    const first = postings[0]?.posting.createdAt;
    // Pending postings can touch cycles that have ended by now, so the read includes all cycles that were live before
    // the first of these postings.
    const stored = this.#balances.read(user, first === undefined ? now : Math.min(now, first - 1));
    // Some of the postings might have been flushed since `latest` was read.
    const missing = postings.filter(({ number }) => number > (stored.latestPosting ?? 0));
    return { stored, current: folded(stored, missing) };
  }

  latestPosting(user: EndUserKey, pending: number | null): number | null {
    const stored = this.#balances.latestPosting(user);
    return pending === null ? stored : Math.max(pending, stored ?? 0);
  }

  #pendingAfter(latest: number | null, pending: number, user: EndUserKey): NumberedPosting[] {
    const postings = this.#postings.after(latest ?? 0, pending, user);
    const isWhole = latest === null || latest >= pending || postings.length > 0;
    assert(isWhole, 'the journal contains the postings that the stored balances do not include');
    return postings;
  }

  /** @returns null if so many postings are missing from `kept` that reading all cycles takes less time */
  #catchUp(user: EndUserKey, kept: Balances, pending: number | null, now: Instant): Balances | null {
    const latest = this.latestPosting(user, pending);
    const from = kept.latestPosting ?? 0;
    const postings = latest === null ? [] : this.#postings.after(from, latest, user, CAUGHT_UP_MAX);
    if (postings === null) return null;
    // The cached state does not contain cycles that had ended when it was read. A posting that was written after that
    // read can have an earlier instant and change such a cycle; `foldedAt` ignores the change.
    return foldedAt(now, kept, postings);
  }

  #take(user: EndUserKey): Balances | null {
    if (this.#kept.size === 0) return null;
    const key = endUserText(user);
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    this.#kept.delete(key);
    this.#keptCycles -= sizeOf(kept.state);
    return kept;
  }

  #keep(user: EndUserKey, balances: Balances): Balances {
    const size = sizeOf(balances.state);
    if (size < MANY_CYCLES) return balances;
    this.#kept.set(endUserText(user), balances);
    this.#keptCycles += size;
    for (const [key, { state }] of this.#kept) {
      if (this.#keptCycles <= KEPT_CYCLES_MAX) break;
      this.#kept.delete(key);
      this.#keptCycles -= sizeOf(state);
    }
    return balances;
  }
}

/** Applies postings, except to ended cycles that are no longer in the state. Changes to holds are always applied. */
function foldedAt(now: Instant, from: Balances, postings: readonly NumberedPosting[]): Balances {
  const known = new Set<TransactionId>(from.state.cycles.map(({ id }) => id));
  const counted = postings.filter(({ posting }) => {
    const { cycleId, expiresAt, held } = posting;
    if (isOpening(posting)) known.add(cycleId);
    const isKnown = known.has(cycleId);
    assert(isKnown || expiresAt <= now, 'every cycle that has not ended is loaded');
    return isKnown || held !== 0;
  });
  const { state } = folded(from, counted);
  return { state: liveState(state, now), latestPosting: postings.at(-1)?.number ?? from.latestPosting };
}

function folded(from: Balances, postings: readonly NumberedPosting[]): Balances {
  const latest = postings.at(-1);
  if (latest === undefined) return from;
  const state = applyAll(
    from.state,
    postings.map(({ posting }) => posting),
  );
  return { state, latestPosting: latest.number };
}

class BalanceReader {
  readonly #current: Statement;
  readonly #withDue: Statement;
  readonly #latest: Statement;
  readonly #endUser = new UuidParameter();

  constructor(db: DatabaseSync) {
    // Read IDs as hexadecimal digits, because each blob would create an array outside of V8's heap.
    const columns = `hex(cycle_id), ${OTHER_COLUMNS}, latest_posting, holds, due_at`;
    const current = `SELECT ${columns} FROM balances WHERE account = ?1 AND end_user = ?2 AND ends_at > ?3`;
    this.#current = prepare(db, `${current} ORDER BY ends_at`);
    this.#withDue = prepare(
      db,
      `${current}
       UNION ALL
       SELECT ${columns} FROM balances
       WHERE account = ?1 AND end_user = ?2 AND type = 'recurring' AND status = 'active' AND ends_at <= ?3`,
    );
    this.#latest = prepare(
      db,
      `SELECT latest_posting FROM balances WHERE account = ? AND end_user = ? AND ends_at = ${END_OF_TIME}`,
    );
  }

  read({ account, endUser }: EndUserKey, now: Instant): Balances {
    const id = this.#endUser.of(endUser);
    const rows = this.#current.all(account, id, now);
    // Only an end user with a due event can have an ended cycle that must still be renewed. `#withDue` reads all rows
    // of such an end user again, not only the ended cycle, because the writer might have flushed after the first read.
    // The last row of `rows` has the type 'end-user', and its last column is `due_at`.
    const dueAt = rows.at(-1)?.at(-1) ?? null;
    return balancesOf(dueAt === null || (dueAt as number) > now ? rows : this.#withDue.all(account, id, now));
  }

  latestPosting({ account, endUser }: EndUserKey): number | null {
    return (this.#latest.all(account, this.#endUser.of(endUser))[0]?.[0] as number | undefined) ?? null;
  }
}

function balancesOf(rows: readonly Row[]): Balances {
  let latestPosting: number | null = null;
  let holds: readonly Hold[] = EMPTY_STATE.holds;
  const cycles: Cycle[] = [];
  for (const row of rows) {
    const latest = row.at(-3);
    if (latest === null) {
      const cycle = cycleOf(row);
      assertReadable(cycle);
      cycles.push(cycle);
    } else {
      assert(latestPosting === null, "an end user has at most one row of type 'end-user'");
      latestPosting = latest as number;
      holds = holdsOfText(row.at(-2) as string | null);
    }
  }
  // Copy the array to save memory: an array that has grown by `push` has room for at least 17 elements.
  return { state: { cycles: inSpendingOrder(cycles).slice(), holds }, latestPosting };
}

/**
 * Yields each end user that has postings after the position in the `flushed` table, with the number of the end user's
 * latest posting. The end users are sorted by this number.
 */
export function* unflushedEndUsers(db: DatabaseSync): Generator<readonly [user: EndUserKey, posting: number]> {
  const rows = prepare(
    db,
    `SELECT max(posting), account, hex(end_user) FROM postings WHERE posting > (SELECT posting FROM flushed)
     GROUP BY account, end_user ORDER BY 1`,
  );
  for (const row of rows.iterate()) {
    const [posting, account, digits] = row as [number, number, string];
    yield [{ account, endUser: uuidOfHex(digits) }, posting];
  }
}
