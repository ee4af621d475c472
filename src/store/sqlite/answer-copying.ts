// All answers of a ledger file, for the copies: given out in the order that every store can give, and entered in the order
// in which they came, since the oldest are forgotten first.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import { outcomeOf, storedOutcome } from '../stored-outcome.ts';
import { SlipReads } from './answer-slip-reads.ts';
import { AnswerTable } from './answer-table.ts';
import { EarlierAnswers } from './earlier-answers.ts';
import { prepare, type Row } from './rows.ts';
import { beginToWrite } from './turn-to-write.ts';
import { bytesOf, uuidOf } from './uuid.ts';

/** Rows that wait to be sorted; SQLite does it on the disk. */
const SORTED = `
  CREATE TEMP TABLE answers_to_sort (
    account INTEGER, end_user BLOB, key TEXT, request TEXT, request_id TEXT, outcome TEXT, answered_at INTEGER
  ) STRICT`;
const SELECT = 'SELECT account, end_user, key, request, request_id, outcome, answered_at FROM answers_to_sort';

/** Entered at once. */
const BATCH = 1_000;

/** By account, end user and key in the order of their bytes, on a connection of its own. */
export function* answersInOrder(db: DatabaseSync): Generator<IdempotencyRecord> {
  db.exec(`BEGIN; ${SORTED}`);
  const insert = insertion(db);
  for (const answer of new EarlierAnswers(db).all()) insertAnswer(insert, answer);
  for (const answer of new SlipReads(db).all()) insertAnswer(insert, answer);
  for (const row of prepare(db, `${SELECT} ORDER BY account, end_user, key`).iterate())
    yield answerOf(row as unknown as Row);
  db.exec('ROLLBACK');
}

/** Enters these answers and takes away all others, in one transaction. */
export async function replaceAnswers(
  db: DatabaseSync,
  answers: AsyncIterable<readonly IdempotencyRecord[]>,
): Promise<void> {
  beginToWrite(db);
  db.exec(`
    DELETE FROM answers; DELETE FROM answer_slips; DELETE FROM answer_segments; DELETE FROM answer_buckets;
    ${SORTED}`);
  const insert = insertion(db);
  for await (const batch of answers) for (const answer of batch) insertAnswer(insert, answer);
  const table = new AnswerTable(db);
  let waiting: IdempotencyRecord[] = [];
  const enter = () => {
    table.insert(waiting, () => null);
    waiting = [];
  };
  for (const row of prepare(db, `${SELECT} ORDER BY answered_at`).iterate())
    if (waiting.push(answerOf(row as unknown as Row)) === BATCH) enter();
  enter();
  db.exec('DROP TABLE answers_to_sort; COMMIT');
}

function insertion(db: DatabaseSync): StatementSync {
  return prepare(db, 'INSERT INTO answers_to_sort VALUES (?, ?, ?, ?, ?, ?, ?)');
}

function insertAnswer(insert: StatementSync, answer: IdempotencyRecord): void {
  const { account, endUser, key, request, requestId, outcome, answeredAt } = answer;
  insert.run(account, bytesOf(endUser), key, request, requestId, storedOutcome(outcome), answeredAt);
}

function answerOf([account, endUser, key, request, requestId, outcome, answeredAt]: Row): IdempotencyRecord {
  return {
    account: account as number,
    endUser: uuidOf(endUser as Uint8Array),
    key: key as string,
    request: request as string,
    requestId: requestId as string,
    outcome: outcomeOf(outcome as string | null),
    answeredAt: answeredAt as number,
  };
}
