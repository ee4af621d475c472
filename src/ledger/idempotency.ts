// The answers that are kept for requests with an idempotency key: the first outcome that a key has led to is the
// outcome of every later request with it, of the same account for the same end user.

import type { Command, EndUserKey, Idempotency, Outcome } from './command.ts';
import type { Instant } from './instant.ts';

/** What became of the first request with a key. */
export interface IdempotencyRecord extends EndUserKey, Idempotency {
  /** What was asked, so that the same key with another request is told apart. */
  readonly request: string;
  readonly outcome: Outcome;
  readonly answeredAt: Instant;
}

/** Answers by the names that `nameOf` gives. */
export type IdempotencyRecords = ReadonlyMap<string, IdempotencyRecord>;

export const NO_RECORDS: IdempotencyRecords = new Map();

/** Unlike that of any other key of any end user: the first two parts have no slash. */
export function nameOf({ account, endUser }: EndUserKey, key: string): string {
  return `${account}/${endUser}/${key}`;
}

/** The key of a command, if it has one. Renewals have none: they are safe as they are. */
export function idempotencyOf(command: Command): Idempotency | null {
  return command.kind === 'renew' ? null : (command.idempotency ?? null);
}

/** All that a command asks for but whom it concerns and who asks: a client may change its API key between two tries. */
export function requestOf(command: Command): string {
  switch (command.kind) {
    case 'add':
      return `add ${command.amount} ${command.validityDays}`;
    case 'subtract':
      return `subtract ${command.amount}`;
    case 'start-cycle':
      return `start-cycle ${command.amount} ${command.validityDays} ${command.onActive}`;
    case 'stop-cycle':
    case 'renew':
      return command.kind;
  }
}

/** The outcome of a request whose key was used before. */
export function replayedOutcome(answer: IdempotencyRecord, command: Command): Outcome {
  if (answer.request !== requestOf(command)) return { refused: 'IdempotencyKeyReused' };
  return { ...answer.outcome, replayOf: answer.requestId };
}
