// Reads the slips of a ledger file, and finds out whom their answers belong to.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import { answersOn, type SlipAnswer } from './answer-slip.ts';
import { prepare, rowsOf } from './rows.ts';
import { uuidOf } from './uuid.ts';

export interface Slip {
  readonly slip: number;
  readonly answers: number;
  readonly entries: Uint8Array;
}

export interface HashedAnswer extends IdempotencyRecord {
  readonly hash: number;
}

export class SlipReads {
  readonly #get: StatementSync;
  readonly #last: StatementSync;
  readonly #count: StatementSync;
  readonly #behind: StatementSync;
  readonly #owner: StatementSync;

  constructor(db: DatabaseSync) {
    this.#get = prepare(db, 'SELECT entries FROM answer_slips WHERE slip = ?');
    this.#last = prepare(db, 'SELECT coalesce(max(slip), 0) FROM answer_slips');
    this.#count = prepare(db, 'SELECT coalesce(sum(answers), 0) FROM answer_slips WHERE slip > ?');
    this.#behind = prepare(db, 'SELECT slip, answers, entries FROM answer_slips WHERE slip > ? ORDER BY slip');
    this.#owner = prepare(db, 'SELECT account, end_user FROM postings WHERE posting = ?');
  }

  /** The number of the latest slip; 0 when there is none. */
  last(): number {
    return Number(rowsOf(this.#last)[0]?.[0]);
  }

  /** Null where it is not on the slip, or the slip is forgotten. */
  find(slip: number, hash: number, { account, endUser }: EndUserKey, key: string): IdempotencyRecord | null {
    const row = this.#get.get(slip) as unknown as [Uint8Array] | undefined;
    if (row === undefined) return null;
    for (const found of answersOn(row[0], hash)) {
      if (found.key !== key) continue;
      const answer = this.#whole(found);
      if (answer.account === account && answer.endUser === endUser) return answer;
    }
    return null;
  }

  answersBehind(slip: number): number {
    return Number(rowsOf(this.#count, slip)[0]?.[0]);
  }

  *behind(after: number): Generator<Slip> {
    for (const row of this.#behind.iterate(after)) {
      const [slip, answers, entries] = row as unknown as [number, number, Uint8Array];
      yield { slip, answers, entries };
    }
  }

  /** Those on a slip, in the order in which they came. */
  *on(entries: Uint8Array): Generator<HashedAnswer> {
    for (const answer of answersOn(entries)) yield this.#whole(answer);
  }

  *all(): Generator<IdempotencyRecord> {
    for (const { entries } of this.behind(0)) yield* this.on(entries);
  }

  #whole({ owner, ...answer }: SlipAnswer): HashedAnswer {
    return { ...answer, ...(typeof owner === 'number' ? this.#ownerOf(owner) : owner) };
  }

  #ownerOf(posting: number): EndUserKey {
    const row = this.#owner.get(posting) as unknown as [number, Uint8Array] | undefined;
    assert(row !== undefined, 'the posting of an answer is there');
    return { account: row[0], endUser: uuidOf(row[1]) };
  }
}
