// Idempotency records: the outcome of the first request with a key is the outcome of all later requests with this key
// for the same end user of the same account.

import { type EndUserKey, endUserText, type Idempotency, type Outcome, type WriteCommand } from './command.ts';
import type { Instant } from './instant.ts';

/** The outcome of the first request with a key. */
export interface IdempotencyRecord extends EndUserKey, Idempotency {
  /** The text from `requestOf`. It shows whether the same key is used for a different request. */
  readonly request: string;
  readonly outcome: Outcome;
  readonly recordedAt: Instant;
}

/** Records by `recordName`. */
export type IdempotencyRecords = ReadonlyMap<string, IdempotencyRecord>;

export const NO_RECORDS: IdempotencyRecords = new Map();

/**
 * A unique text for an idempotency key of an end user.
 *
 * @param user the `endUserText` of the end user
 */
export function recordName(user: string, key: string): string {
  return `${user}/${key}`;
}

/** The `recordName` of a record. */
export function nameOf(record: IdempotencyRecord): string {
  return recordName(endUserText(record), record.key);
}

/** A command without its end user, actor and note: a client may change its API key between two attempts. */
export function requestOf(command: WriteCommand): string {
  switch (command.kind) {
    case 'add':
      return `add ${command.amount} ${command.validityDays}`;
    case 'subtract':
      return `subtract ${command.amount}`;
    case 'start-cycle':
      return `start-cycle ${command.amount} ${command.validityDays} ${command.onActive}`;
    case 'stop-cycle':
      return command.kind;
  }
}

/** The outcome of a request with a key that was used before. */
export function replayedOutcome(record: IdempotencyRecord, command: WriteCommand): Outcome {
  if (record.request !== requestOf(command)) return { refused: 'IdempotencyKeyReused' };
  return { ...record.outcome, replayOf: record.requestId };
}
