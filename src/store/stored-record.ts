// How stores save idempotency records: the outcome as JSON, and which of the two retentions applies.

import { ACCEPTED, type Outcome } from '../ledger/command.ts';
import type { IdempotencyRecord } from '../ledger/idempotency.ts';

/** @returns null for an accepted request without a cycle to return */
export function storedOutcome(outcome: Outcome): string | null {
  return outcome.refused === null && outcome.cycle === null ? null : JSON.stringify(outcome);
}

export function outcomeOf(stored: string | null): Outcome {
  return stored === null ? ACCEPTED : (JSON.parse(stored) as Outcome);
}

/** Whether the request was for a grant. Records of grants are kept longer. */
export function isGrant({ request }: Pick<IdempotencyRecord, 'request'>): boolean {
  return request.startsWith('add ') || request.startsWith('start-cycle ');
}
