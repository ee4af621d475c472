// What can be asked of the ledger, and what it answers. A refusal is a value: a rule said no, and nothing changed.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { Actor, Note } from './posting.ts';

/** Whose cycles a command is about. */
export interface EndUserKey {
  /** The account that owns the API key, never anything that a request says. */
  readonly account: number;
  /** A UUID in lower case. */
  readonly endUser: string;
}

/** What a request brings to be safe to send again. */
export interface Idempotency {
  /** 1 … 255 characters. */
  readonly key: string;
  /** Of this request: whoever is given its answer again is given this as well. */
  readonly requestId: string;
}

interface Request extends EndUserKey {
  readonly actor: Actor;
  /** Null where a repetition counts as another request. */
  readonly idempotency?: Idempotency | null;
  /** Why it is done, in the words of whoever does it; the API has no such field. */
  readonly note?: Note | null;
}

export interface Add extends Request {
  readonly kind: 'add';
  readonly amount: Amount;
  readonly validityDays: number;
}

export interface Subtract extends Request {
  readonly kind: 'subtract';
  readonly amount: Amount;
}

export interface StartCycle extends Request {
  readonly kind: 'start-cycle';
  readonly amount: Amount;
  readonly validityDays: number;
  /** What to do when a cycle is active: `replace` stops it and starts the new one in one step. */
  readonly onActive: 'refuse' | 'replace';
}

export interface StopCycle extends Request {
  readonly kind: 'stop-cycle';
}

/** Nothing but what time has done: the renewal clock asks for it. */
export interface Renew extends EndUserKey {
  readonly kind: 'renew';
}

export type Command = Add | Subtract | StartCycle | StopCycle | Renew;

export type Refusal =
  | { readonly refused: 'InsufficientFunds'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'BalanceTooLarge'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'CycleAlreadyActive'; readonly cycle: Cycle }
  | { readonly refused: 'CycleNotFound' }
  /** Its idempotency key belongs to another request. */
  | { readonly refused: 'IdempotencyKeyReused' };

export interface Accepted {
  readonly refused: null;
  /** The cycle that was started or stopped; null for the other commands. */
  readonly cycle: Cycle | null;
}

export type Outcome = (Accepted | Refusal) & {
  /** The id of the first request with this idempotency key, when the outcome is the one that it had. */
  readonly replayOf?: string;
};

export const ACCEPTED: Accepted = { refused: null, cycle: null };
