// Answers as they were stored before there were slips: a row each, found by its key. None are added; they are forgotten a
// few at a time, going round the table, and after a day or however long they are kept there are none.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Instant } from '../../ledger/instant.ts';
import { outcomeOf } from '../stored-outcome.ts';
import { prepare, rowsOf } from './rows.ts';
import { bytesOf, uuidOf } from './uuid.ts';

/** Looked at in one step. */
const LOOKED_AT = 2_000;

const STORED = 'key, request, request_id, outcome, answered_at';
type StoredAnswer = readonly [key: string, request: string, requestId: string, outcome: string | null, at: Instant];

type Position = readonly [account: number, endUser: Uint8Array, key: string];

/** Before every row. */
const START: Position = [-1, new Uint8Array(), ''];

export class EarlierAnswers {
  readonly #get: StatementSync;
  readonly #all: StatementSync;
  readonly #next: StatementSync;
  readonly #delete: StatementSync;
  #position = START;
  #isEmpty: boolean;

  constructor(db: DatabaseSync) {
    this.#get = prepare(db, `SELECT ${STORED} FROM answers WHERE account = ? AND end_user = ? AND key = ?`);
    this.#all = prepare(db, `SELECT account, end_user, ${STORED} FROM answers`);
    this.#next = prepare(
      db,
      `SELECT account, end_user, key, answered_at FROM answers WHERE (account, end_user, key) > (?, ?, ?)
       ORDER BY account, end_user, key LIMIT ?`,
    );
    this.#delete = prepare(db, 'DELETE FROM answers WHERE account = ? AND end_user = ? AND key = ?');
    this.#isEmpty = rowsOf(this.#next, ...START, 1).length === 0;
  }

  find({ account, endUser }: EndUserKey, key: string): IdempotencyRecord | null {
    if (this.#isEmpty) return null;
    const row = this.#get.get(account, bytesOf(endUser), key) as unknown as StoredAnswer | undefined;
    return row === undefined ? null : answerOf(account, endUser, row);
  }

  *all(): Generator<IdempotencyRecord> {
    for (const each of this.#all.iterate()) {
      const [account, endUser, ...answer] = each as unknown as [number, Uint8Array, ...StoredAnswer];
      yield answerOf(account, uuidOf(endUser), answer);
    }
  }

  /**
   * Forgets those of before `instant` among the next few, beginning again at the end.
   *
   * @returns how many it has forgotten
   */
  forget(instant: Instant): number {
    if (this.#isEmpty) return 0;
    const rows = rowsOf(this.#next, ...this.#position, LOOKED_AT) as readonly (readonly [...Position, Instant])[];
    const old = rows.filter(([, , , answeredAt]) => answeredAt < instant);
    for (const [account, endUser, key] of old) this.#delete.run(account, endUser, key);
    const last = rows.at(-1);
    this.#position = last === undefined || rows.length < LOOKED_AT ? START : [last[0], last[1], last[2]];
    if (this.#position === START) this.#isEmpty = rowsOf(this.#next, ...START, 1).length === 0;
    return old.length;
  }
}

function answerOf(account: number, endUser: string, stored: StoredAnswer): IdempotencyRecord {
  const [key, request, requestId, outcome, answeredAt] = stored;
  return { account, endUser, key, request, requestId, outcome: outcomeOf(outcome), answeredAt };
}
