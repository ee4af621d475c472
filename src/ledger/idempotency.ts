// Idempotency records: if a request for an end user is repeated with the same key, the repeated request gets the
// outcome of the first request.

import { hash } from 'node:crypto';
import {
  type Add,
  type EndUserKey,
  endUserText,
  type Idempotency,
  type Outcome,
  type StartCycle,
  type WriteCommand,
} from './command.ts';
import type { Instant } from './instant.ts';

export interface IdempotencyRecord extends EndUserKey, Idempotency {
  /**
   * The result of `requestOf` for the first request. If the result for a later request with the same key differs, the
   * key was reused for a different request.
   */
  readonly request: string;
  readonly outcome: Outcome;
  readonly recordedAt: Instant;
}

/** Records by `recordName`. */
export type IdempotencyRecords = ReadonlyMap<string, IdempotencyRecord>;

export const NO_RECORDS: IdempotencyRecords = new Map();

/**
 * The name of an idempotency record, unique for each end user and key.
 *
 * @param user the `endUserText` of the end user
 */
export function recordName(user: string, key: string): string {
  return `${user}/${key}`;
}

export function nameOf(record: IdempotencyRecord): string {
  return recordName(endUserText(record), record.key);
}

/**
 * The parameters of a command as text, to compare a repeated request with the first one. The text does not contain the
 * actor, because a client can change its API key between two attempts.
 */
export function requestOf(command: WriteCommand): string {
  const terms = termsOf(command);
  // A hash is enough to compare notes, and takes less space than a long note. If the command is accepted, the postings
  // contain the note itself.
  return command.note == null ? terms : `${terms} ${hash('sha256', command.note, 'base64url')}`;
}

function termsOf(command: WriteCommand): string {
  switch (command.kind) {
    case 'add':
      return `add ${command.amount} ${validityText(command)}`;
    case 'subtract':
      return `subtract ${command.amount}`;
    case 'start-cycle':
      return `start-cycle ${command.amount} ${validityText(command)} ${command.rolloverMax ?? 0} ${command.onActive}`;
    case 'stop-cycle':
      return command.kind;
    case 'hold':
      return `hold ${command.amount} ${command.expiresInSeconds}`;
    case 'capture':
      return `capture ${command.holdId} ${command.amount}`;
    case 'release':
      return `release ${command.holdId}`;
    case 'refund':
      return `refund ${command.transactionId} ${command.amount} ${command.validityDays}`;
  }
}

function validityText({ validityDays, validityMonths }: Add | StartCycle): string {
  return validityDays === null ? `${validityMonths}m` : `${validityDays}d`;
}

export function replayedOutcome(record: IdempotencyRecord, command: WriteCommand): Outcome {
  if (record.request !== requestOf(command)) return { refused: 'IdempotencyKeyReused' };
  return { ...record.outcome, replayOf: record.requestId };
}
