// Idempotency records: the first outcome that a key has led to is the outcome of every later request with it, of the same
// account for the same end user.

import { type EndUserKey, endUserText, type Idempotency, type Outcome, type WriteCommand } from './command.ts';
import type { Instant } from './instant.ts';

/** The outcome of the first request with a key. */
export interface IdempotencyRecord extends EndUserKey, Idempotency {
  /** What was asked, so that the same key with another request is recognized. */
  readonly request: string;
  readonly outcome: Outcome;
  readonly recordedAt: Instant;
}

/** Records by `recordName`. */
export type IdempotencyRecords = ReadonlyMap<string, IdempotencyRecord>;

export const NO_RECORDS: IdempotencyRecords = new Map();

/**
 * One text for one key of one end user.
 *
 * @param user its `endUserText`
 */
export function recordName(user: string, key: string): string {
  return `${user}/${key}`;
}

/** The name of a record that is stored. */
export function nameOf(record: IdempotencyRecord): string {
  return recordName(endUserText(record), record.key);
}

/** All that a command asks for but its end user and its actor: a client may change its API key between two tries. */
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

/** The outcome of a request whose key was used before. */
export function replayedOutcome(record: IdempotencyRecord, command: WriteCommand): Outcome {
  if (record.request !== requestOf(command)) return { refused: 'IdempotencyKeyReused' };
  return { ...record.outcome, replayOf: record.requestId };
}
