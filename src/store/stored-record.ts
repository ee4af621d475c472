// How stores save idempotency records.

import type { Outcome } from '../ledger/command.ts';
import type { IdempotencyRecord } from '../ledger/idempotency.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';

/** Most requests are accepted, and their outcome is only a transaction id. */
export interface StoredOutcome {
  /** Null if there is no transaction. */
  readonly transactionId: TransactionId | null;
  /** JSON; null if the request was accepted and the outcome has no further data. */
  readonly outcome: string | null;
}

export function storedOutcome(outcome: Outcome): StoredOutcome {
  if (outcome.refused !== null) return { transactionId: null, outcome: JSON.stringify(outcome) };
  const { refused, transactionId, ...result } = outcome;
  const isPlain = transactionId !== null && Object.keys(result).length === 0;
  return { transactionId, outcome: isPlain ? null : JSON.stringify({ refused, ...result }) };
}

export function outcomeOf({ transactionId, outcome }: StoredOutcome): Outcome {
  if (outcome === null) return { refused: null, transactionId };
  const stored = JSON.parse(outcome) as Outcome;
  return stored.refused === null ? { ...stored, transactionId } : stored;
}

/** Whether the request was for a grant, whose record is kept longer. */
export function isGrant({ request }: Pick<IdempotencyRecord, 'request'>): boolean {
  return request.startsWith('add ') || request.startsWith('start-cycle ');
}
