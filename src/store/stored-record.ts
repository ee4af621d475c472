// Converts the outcome in an idempotency record to the two values that a store saves, and back.

import type { Outcome } from '../ledger/command.ts';
import type { IdempotencyRecord } from '../ledger/idempotency.ts';
import type { TransactionId } from '../ledger/transaction-id.ts';

/**
 * Most requests are accepted, and their outcome contains only a transaction ID. For these requests, `outcome` is null.
 */
interface StoredOutcome {
  /** Null if the request caused no transaction. */
  readonly transactionId: TransactionId | null;
  /** JSON; null if the request was accepted and the outcome contains only the transaction ID. */
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

/** Whether the request was a grant. The idempotency records of grants are kept longer than those of other requests. */
export function isGrant({ request }: Pick<IdempotencyRecord, 'request'>): boolean {
  return request.startsWith('add ') || request.startsWith('start-cycle ');
}
