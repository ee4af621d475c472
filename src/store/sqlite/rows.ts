// Rows to cycles and postings, and the statements that read them. Shared by the writer and the readers.

import assert from 'node:assert/strict';
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle, type CycleStatus, type CycleType, inBurnOrder } from '../../ledger/cycle.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Posting, PostingKind } from '../../ledger/posting.ts';
import { UuidParameter, uuidOf, uuidOfHex } from './uuid.ts';

export type Row = readonly SQLOutputValue[];

export const CYCLE_COLUMNS_BUT_ID = 'period, type, status, amount, remaining, starts_at, ends_at, validity_days';
export const CYCLE_COLUMNS = `cycle_id, ${CYCLE_COLUMNS_BUT_ID}`;
export const POSTING_COLUMNS = 'transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor, note';

/** A statement whose rows come as arrays, which are cheaper than objects. */
export function prepare(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

export function rowsOf(statement: StatementSync, ...parameters: (number | string | Uint8Array)[]): readonly Row[] {
  return statement.all(...parameters) as unknown as Row[];
}

/** A text that comes from SQLite is compared letter by letter, where one that stands in a program is known by its place. */
const NAMES = new Map<string, never>(
  ['one-time', 'recurring', 'active', 'canceled', 'renewed'].map((name) => [name, name as never]),
);

/** As stored, right or wrong: the audit wants to see it, all others check it. */
export function cycleOf(row: Row): Cycle {
  const [cycleId, period, type, status, amount, remaining, start, end, validityDays] = row;
  return {
    id: uuidIn(cycleId),
    period: Number(period),
    type: NAMES.get(type as CycleType) ?? (type as CycleType),
    status: NAMES.get(status as CycleStatus) ?? (status as CycleStatus),
    amount: Number(amount),
    remaining: Number(remaining),
    start: Number(start),
    end: Number(end),
    validityDays: Number(validityDays),
  };
}

export function postingOf(row: Row): Posting {
  const [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note] = row;
  return {
    transactionId: uuidIn(transactionId),
    cycleId: uuidIn(cycleId),
    period: Number(period),
    kind: kind as PostingKind,
    amount: Number(amount),
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    actor: actor as string,
    note: note as string | null,
  };
}

/** From its digits or its bytes, as it was asked for. */
function uuidIn(value: SQLOutputValue | undefined): string {
  return typeof value === 'string' ? uuidOfHex(value) : uuidOf(value as Uint8Array);
}

/** Where an end user's own row stands among its holdings: after every end. */
export const END_OF_TIME = Number.MAX_SAFE_INTEGER;

export interface Holdings {
  /** In burn order: the cycles that have not ended, and the one that is due to renew. */
  readonly cycles: readonly Cycle[];
  /** The latest posting of the end user; null for one never heard of. */
  readonly latestPosting: number | null;
  /** How many postings it has. */
  readonly postingCount: number;
  /** The head of its chain; null where none is kept. */
  readonly chain: ChainHash | null;
}

/** Whether a decision at `now` needs it; `HoldingsReader` says the same in SQL. */
export function isCounted({ type, status, end }: Cycle, now: Instant): boolean {
  return end > now || (type === 'recurring' && status === 'active');
}

/** Reads what is stored of what a decision about an end user needs. */
export class HoldingsReader {
  readonly #load: StatementSync;
  readonly #endUser = new UuidParameter();

  constructor(db: DatabaseSync) {
    // A blob that is read costs an array outside of the heap; its digits do not.
    const columns = `hex(cycle_id), ${CYCLE_COLUMNS_BUT_ID}, chain, posting_count, latest_posting`;
    this.#load = prepare(
      db,
      `SELECT ${columns} FROM holdings WHERE account = ?1 AND end_user = ?2 AND ends_at > ?3
       UNION ALL
       SELECT ${columns} FROM holdings
       WHERE account = ?1 AND end_user = ?2 AND type = 'recurring' AND status = 'active' AND ends_at <= ?3`,
    );
  }

  read({ account, endUser }: EndUserKey, now: Instant): Holdings {
    let latestPosting: number | null = null;
    let postingCount = 0;
    let chain: ChainHash | null = null;
    const cycles: Cycle[] = [];
    for (const row of rowsOf(this.#load, account, this.#endUser.of(endUser), now)) {
      const latest = row.at(-1);
      if (latest === null) {
        cycles.push(cycleOf(row));
        continue;
      }
      latestPosting = latest as number;
      postingCount = row.at(-2) as number;
      chain = row.at(-3) as ChainHash | null;
      assert(postingCount > 0, 'the postings of an end user are counted');
    }
    cycles.forEach(assertCycle);
    return { cycles: inBurnOrder(cycles), latestPosting, postingCount, chain };
  }
}

/** Postings that are read one by one, before who follows a chain is seen to want more than a few. */
const ONE_BY_ONE = 4;
/**
 * How many of the others are read by one statement, at first and at the most. A posting takes 3.9 µs by itself, 4.8 µs in
 * pieces of 8, 3.3 µs in pieces of 16 and 1.9 µs in pieces of 64; what is read of a piece and not wanted is for nothing.
 */
const PIECE_MIN = 16;
const PIECE_MAX = 64;

/** Digits are read rather than bytes, of which each would be an array outside of the heap. */
const CHAIN_COLUMNS = `hex(p.transaction_id), hex(p.cycle_id), p.period, p.kind, p.amount, p.created_at, p.expires_at,
  p.actor, p.note, p.posting, p.previous, p.account = ?2 AND p.end_user = ?3`;
/** Where these are, behind what `postingOf` reads. */
const [NUMBER, PREVIOUS, IS_OWN] = [9, 10, 11];

/**
 * Follows the postings of an end user from one back to the first.
 *
 * With `anyInteger` it also reads integers past 2^53−1, rounded: only the audit wants to see those.
 */
export class PostingsReader {
  readonly #get: StatementSync;
  readonly #piece: StatementSync;
  readonly #endUser = new UuidParameter();

  constructor(db: DatabaseSync, { anyInteger = false } = {}) {
    this.#get = prepare(db, `SELECT ${CHAIN_COLUMNS} FROM postings AS p WHERE p.posting = ?1`);
    // What is read of a posting is read outside of the recursion, whose rows are copied. The order of a CROSS JOIN stays.
    this.#piece = prepare(
      db,
      `WITH RECURSIVE chain (posting, previous) AS (
         SELECT posting, previous FROM postings WHERE posting = ?1
         UNION ALL
         SELECT p.posting, p.previous FROM chain CROSS JOIN postings AS p
         WHERE p.posting = chain.previous AND p.posting < chain.posting
         LIMIT ?4
       )
       SELECT ${CHAIN_COLUMNS} FROM chain CROSS JOIN postings AS p ON p.posting = chain.posting`,
    );
    this.#get.setReadBigInts(anyInteger);
    this.#piece.setReadBigInts(anyInteger);
  }

  /** Latest first. Ends early where the chain is broken, which the audit finds out. */
  *from(start: number | null, user: EndUserKey): Generator<{ number: number; posting: Posting }> {
    let next = start;
    for (let length = 1, read = 0; next !== null; read += length) {
      if (read >= ONE_BY_ONE) length = Math.min(PIECE_MAX, Math.max(PIECE_MIN, 2 * length));
      const rows: readonly Row[] = this.#rows(next, user, length);
      if (rows.length === 0) return;
      for (const row of rows) {
        const number = Number(row[NUMBER]);
        assert(number === next, 'a piece of a chain is in the order of the chain');
        if (!row[IS_OWN]) return;
        yield { number, posting: postingOf(row) };
        next = row[PREVIOUS] === null ? null : Number(row[PREVIOUS]);
        if (next !== null && next >= number) return;
      }
    }
  }

  #rows(from: number, { account, endUser }: EndUserKey, length: number): readonly Row[] {
    const owner = [account, this.#endUser.of(endUser)] as const;
    return length === 1 ? rowsOf(this.#get, from, ...owner) : rowsOf(this.#piece, from, ...owner, length);
  }
}
