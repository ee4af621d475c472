// The answers to idempotency keys in a ledger file: read and written by the batch that they belong to, and forgotten a slip
// at a time, the oldest first.

import { AssertionError } from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Command, EndUserKey } from '../../ledger/command.ts';
import {
  type IdempotencyRecord,
  type IdempotencyRecords,
  idempotencyOf,
  NO_RECORDS,
  nameOf,
} from '../../ledger/idempotency.ts';
import type { Instant } from '../../ledger/instant.ts';
import { CannotOpen } from '../store.ts';
import { AnswerHash } from './answer-hash.ts';
import { ANSWER_LIMITS, AnswerIndex, type AnswerLimits } from './answer-index.ts';
import { OpenSlip, takeHashes } from './answer-slip.ts';
import { SlipReads } from './answer-slip-reads.ts';
import { EarlierAnswers } from './earlier-answers.ts';
import { prepare, rowsOf } from './rows.ts';

/** Looked at in one step, besides twice as many as have come since the last: it never falls behind. */
const SLIPS_LOOKED_AT = 64;

/** A slip is forgotten as a whole, so it is added to for no longer than this. */
const SLIP_SPAN_MS = 60_000;

/** Slips and postings are counted from 1. */
const NONE = 0;

export interface Forgotten {
  readonly answers: number;
  /** Whether anything was written. */
  readonly isChanged: boolean;
}

export class AnswerTable {
  readonly #hash: AnswerHash;
  readonly #index: AnswerIndex;
  readonly #earlier: EarlierAnswers;
  readonly #slips: SlipReads;
  readonly #put: StatementSync;
  readonly #oldest: StatementSync;
  readonly #delete: StatementSync;
  readonly #open = new OpenSlip();
  /** The number of `#open`; none when the next answer begins another. */
  #slip = NONE;
  #lastSlip: number;
  #slipsBegun = 0;

  constructor(db: DatabaseSync, limits: AnswerLimits = ANSWER_LIMITS) {
    this.#hash = new AnswerHash(db);
    this.#index = new AnswerIndex(db, limits);
    this.#earlier = new EarlierAnswers(db);
    this.#slips = new SlipReads(db);
    this.#put = prepare(db, 'REPLACE INTO answer_slips (slip, answers, answered_at, entries) VALUES (?, ?, ?, ?)');
    this.#oldest = prepare(db, 'SELECT slip, answers, answered_at FROM answer_slips ORDER BY slip LIMIT ?');
    this.#delete = prepare(db, 'DELETE FROM answer_slips WHERE slip <= ?');
    this.#lastSlip = Math.max(this.#index.lastSlip, this.#slips.last());
    this.#remember();
  }

  /** Those of the keys of a batch that were used before. */
  load(commands: readonly Command[]): IdempotencyRecords {
    let found: Map<string, IdempotencyRecord> | null = null;
    let isKeyed = false;
    for (const command of commands) {
      const idempotency = idempotencyOf(command);
      if (idempotency === null) continue;
      isKeyed = true;
      const answer = this.#find(command, idempotency.key) ?? this.#earlier.find(command, idempotency.key);
      if (answer === null) continue;
      found ??= new Map();
      found.set(nameOf(command, idempotency.key), answer);
    }
    if (isKeyed) this.#index.warm();
    return found ?? NO_RECORDS;
  }

  /**
   * Enters the answers of a batch, no earlier than those before.
   *
   * @param postingOf a posting of the end user of an answer; null where it has none
   */
  insert<Entered extends IdempotencyRecord>(
    answers: readonly Entered[],
    postingOf: (answer: Entered) => number | null,
  ): void {
    if (answers.length === 0) return;
    const postings = answers.map(postingOf);
    const newest = postings.reduce<number>((latest, posting) => Math.max(latest, posting ?? NONE), NONE);
    let batchAt: Instant | null = null;
    answers.forEach((answer, place) => {
      const posting = postings[place] ?? null;
      const hash = this.#hash.of(answer, answer.key);
      const begin = () => {
        this.#begin(answer);
        batchAt = null;
      };
      const enter = () => {
        if (batchAt !== answer.answeredAt) this.#open.batch(answer.answeredAt, newest);
        batchAt = answer.answeredAt;
        return this.#open.add(answer, hash, posting);
      };
      if (!this.#isOpenAt(answer.answeredAt)) begin();
      if (!enter()) {
        begin();
        enter();
      }
      this.#index.add(hash, this.#slip);
    });
    this.#store();
    this.#index.work(answers.length);
  }

  /** Forgets those of before `instant` among the oldest. */
  forget(instant: Instant): Forgotten {
    const slips = rowsOf(this.#oldest, SLIPS_LOOKED_AT + 2 * this.#slipsBegun) as [number, number, Instant][];
    this.#slipsBegun = 0;
    this.#index.warm();
    const kept = slips.findIndex(([, , answeredAt]) => answeredAt >= instant);
    const old = kept < 0 ? slips : slips.slice(0, kept);
    const last = old.at(-1)?.[0] ?? NONE;
    if (last !== NONE) this.#delete.run(last);
    if (last >= this.#slip) this.#slip = NONE;
    const firstKept = slips[old.length]?.[0] ?? (slips.length === 0 ? this.#lastSlip : last) + 1;
    const isIndexChanged = this.#index.forgetBefore(firstKept);
    const answers = old.reduce((sum, [, count]) => sum + count, this.#earlier.forget(instant));
    return { answers, isChanged: answers > 0 || isIndexChanged };
  }

  /** What no segment knows of: so many answers at most as memory has twice. */
  #remember(): void {
    const covered = this.#index.coveredSlip;
    this.#index.expect(this.#slips.answersBehind(covered));
    try {
      for (const { slip, entries } of this.#slips.behind(covered))
        takeHashes(entries, (hash) => this.#index.add(hash, slip));
    } catch (error) {
      if (!(error instanceof AssertionError || error instanceof RangeError)) throw error;
      throw new CannotOpen(
        `The answers to idempotency keys are damaged (${error.message}); run \`scrip verify\` and restore a backup.`,
      );
    }
  }

  #find(user: EndUserKey, key: string): IdempotencyRecord | null {
    const hash = this.#hash.of(user, key);
    let slips: number[] | null = null;
    this.#index.find(hash, (_, slip) => {
      slips ??= [];
      slips.push(slip);
    });
    for (const slip of slips ?? []) {
      const answer = this.#slips.find(slip, hash, user, key);
      if (answer !== null) return answer;
    }
    return null;
  }

  #isOpenAt(instant: Instant): boolean {
    return this.#slip !== NONE && instant <= this.#open.beganAt + SLIP_SPAN_MS;
  }

  #begin({ requestId, answeredAt }: IdempotencyRecord): void {
    this.#store();
    if (this.#index.isFull) this.#index.file(this.#lastSlip);
    this.#slip = ++this.#lastSlip;
    this.#slipsBegun += 1;
    this.#open.begin(requestId, answeredAt);
  }

  #store(): void {
    if (this.#slip === NONE) return;
    const { answers, at, entries } = this.#open;
    this.#put.run(this.#slip, answers, at, entries);
  }
}
