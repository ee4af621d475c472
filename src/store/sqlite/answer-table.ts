// The answers to idempotency keys in a ledger file: read and written by the batch that they belong to, and forgotten a
// few at a time.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Answer, type Answers, idempotencyOf, NO_ANSWERS, nameOf } from '../../ledger/answer.ts';
import type { Command } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import { outcomeOf, storedOutcome } from '../answer-outcome.ts';
import { prepare, rowsOf } from './rows.ts';
import { bytesOf, uuidOf } from './uuid.ts';

/** Looked at in one step, besides twice as many as have come since the last: going round never takes for ever. */
const LOOKED_AT = 2_000;

const STORED = 'key, request, request_id, outcome, answered_at';
type StoredAnswer = readonly [key: string, request: string, requestId: string, outcome: string | null, at: Instant];

type Position = readonly [account: number, endUser: Uint8Array, key: string];

/** Before every row. */
const START: Position = [-1, new Uint8Array(), ''];

export class AnswerTable {
  readonly #get: StatementSync;
  readonly #all: StatementSync;
  readonly #insert: StatementSync;
  readonly #next: StatementSync;
  readonly #delete: StatementSync;
  #inserted = 0;
  #position = START;

  constructor(db: DatabaseSync) {
    this.#get = prepare(db, `SELECT ${STORED} FROM answers WHERE account = ? AND end_user = ? AND key = ?`);
    this.#all = prepare(db, `SELECT account, end_user, ${STORED} FROM answers ORDER BY account, end_user, key`);
    this.#insert = prepare(
      db,
      `INSERT INTO answers (account, end_user, key, request, request_id, outcome, answered_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#next = prepare(
      db,
      `SELECT account, end_user, key, answered_at FROM answers WHERE (account, end_user, key) > (?, ?, ?)
       ORDER BY account, end_user, key LIMIT ?`,
    );
    this.#delete = prepare(db, 'DELETE FROM answers WHERE account = ? AND end_user = ? AND key = ?');
  }

  /** Those of the keys of a batch that were used before. */
  load(commands: readonly Command[]): Answers {
    let found: Map<string, Answer> | null = null;
    for (const command of commands) {
      const idempotency = idempotencyOf(command);
      if (idempotency === null) continue;
      const { account, endUser } = command;
      const { key } = idempotency;
      const row = this.#get.get(account, bytesOf(endUser), key) as unknown as StoredAnswer | undefined;
      if (row === undefined) continue;
      found ??= new Map();
      found.set(nameOf(command, key), answerOf(account, endUser, row));
    }
    return found ?? NO_ANSWERS;
  }

  /** All of them, by account, end user and key. */
  *all(): Generator<Answer> {
    for (const each of this.#all.iterate()) {
      const [account, endUser, ...answer] = each as unknown as [number, Uint8Array, ...StoredAnswer];
      yield answerOf(account, uuidOf(endUser), answer);
    }
  }

  insert({ account, endUser, key, request, requestId, outcome, answeredAt }: Answer): void {
    this.#insert.run(account, bytesOf(endUser), key, request, requestId, storedOutcome(outcome), answeredAt);
    this.#inserted += 1;
  }

  /**
   * Forgets those of before `instant` among the next few, beginning again at the end.
   *
   * @returns how many it has forgotten
   */
  forget(instant: Instant): number {
    const limit = LOOKED_AT + 2 * this.#inserted;
    const rows = rowsOf(this.#next, ...this.#position, limit) as readonly (readonly [...Position, Instant])[];
    const old = rows.filter(([, , , answeredAt]) => answeredAt < instant);
    for (const [account, endUser, key] of old) this.#delete.run(account, endUser, key);
    const last = rows.at(-1);
    this.#position = last === undefined || rows.length < limit ? START : [last[0], last[1], last[2]];
    this.#inserted = 0;
    return old.length;
  }
}

function answerOf(account: number, endUser: string, stored: StoredAnswer): Answer {
  const [key, request, requestId, outcome, answeredAt] = stored;
  return { account, endUser, key, request, requestId, outcome: outcomeOf(outcome), answeredAt };
}
