// The answers to idempotency keys as rows: what a batch asks for, and what it enters.

import type { Command } from '../../ledger/command.ts';
import { type IdempotencyRecord, type IdempotencyRecords, idempotencyOf, nameOf } from '../../ledger/idempotency.ts';
import type { Instant } from '../../ledger/instant.ts';
import { outcomeOf, storedOutcome } from '../stored-outcome.ts';
import { keyOf } from './key.ts';
import { RowArrays } from './row-arrays.ts';
import { exactInteger } from './rows.ts';
import type { Statement } from './statements.ts';
import type { TextRow } from './step.ts';

export interface AnswerRow {
  readonly account: number;
  readonly end_user: string;
  readonly key: string;
  readonly request: string;
  readonly request_id: string;
  readonly outcome: string | null;
  readonly answered_at: Instant;
}

/** The keys of a batch. */
export function keysAsked(statement: Statement, commands: readonly Command[]): RowArrays {
  const rows = new RowArrays(statement.types);
  for (const command of commands) {
    const idempotency = idempotencyOf(command);
    if (idempotency !== null) rows.add(...keyOf(command), idempotency.key);
  }
  return rows;
}

/** @param rows with the columns of an end user's key but for the bucket, then those of `ANSWER`, as they are written out */
export function answersOf(rows: readonly TextRow[]): IdempotencyRecords {
  return new Map(rows.map(answerOfText).map((answer) => [nameOf(answer, answer.key), answer]));
}

function answerOfText(columns: TextRow): IdempotencyRecord {
  const [account, endUser, key, request, requestId, outcome, answeredAt] = columns as readonly string[];
  return answerOf({
    account: Number(account),
    end_user: endUser as string,
    key: key as string,
    request: request as string,
    request_id: requestId as string,
    outcome: outcome as string | null,
    answered_at: exactInteger(answeredAt as string),
  });
}

export function answerOf(row: AnswerRow): IdempotencyRecord {
  return {
    account: row.account,
    endUser: row.end_user,
    key: row.key,
    request: row.request,
    requestId: row.request_id,
    outcome: outcomeOf(row.outcome),
    answeredAt: row.answered_at,
  };
}

export function answerColumns({ key, request, requestId, outcome, answeredAt }: IdempotencyRecord) {
  return [key, request, requestId, storedOutcome(outcome), answeredAt] as const;
}
