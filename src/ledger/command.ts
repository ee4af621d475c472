// What can be asked of the ledger, and the outcome. A refusal is a value: a rule said no, and nothing changed.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { Actor, Note } from './posting.ts';

export interface EndUserKey {
  /** The account that owns the API key, never anything that a request says. */
  readonly account: number;
  /** A UUID in lower case. */
  readonly endUser: string;
}

/** One text for one end user: an account is a number, and a UUID has no slash. */
export function endUserText({ account, endUser }: EndUserKey): string {
  return `${account}/${endUser}`;
}

/** The end user of an `endUserText`. */
export function endUserOf(text: string): EndUserKey {
  const slash = text.indexOf('/');
  return { account: Number(text.slice(0, slash)), endUser: text.slice(slash + 1) };
}

export function isSameEndUser(a: EndUserKey, b: EndUserKey): boolean {
  return a.endUser === b.endUser && a.account === b.account;
}

/** What makes a request safe to send again. */
export interface Idempotency {
  /** 1 … 255 characters. */
  readonly key: string;
  /** The id of this request; a replayed response carries the id of the first one. */
  readonly requestId: string;
}

interface Request extends EndUserKey {
  readonly actor: Actor;
  /** Null where a repetition counts as another request. */
  readonly idempotency?: Idempotency | null;
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

/** What a client or a user of the console can ask for. */
export type WriteCommand = Add | Subtract | StartCycle | StopCycle;

/** Stores what time alone has done. The renewal job asks for it. */
export interface Settle extends EndUserKey {
  readonly kind: 'settle';
}

export type Command = WriteCommand | Settle;

/** What a store has to load before a command can be decided, besides the live cycles of its end user. */
export interface Needs {
  /** The key whose idempotency record decides, if there is one; null for a request without a key. */
  readonly idempotencyKey: string | null;
  /** Whether the command can store something for an end user who has nothing yet. */
  readonly canCreate: boolean;
}

export function needs(command: Command): Needs {
  const idempotencyKey = command.kind === 'settle' ? null : (command.idempotency?.key ?? null);
  const grants = command.kind === 'add' || command.kind === 'start-cycle';
  return { idempotencyKey, canCreate: grants || idempotencyKey !== null };
}

export type Refusal =
  | { readonly refused: 'InsufficientFunds'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'BalanceTooLarge'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'CycleAlreadyActive'; readonly cycle: Cycle }
  | { readonly refused: 'CycleNotFound' }
  /** The idempotency key belongs to another request. */
  | { readonly refused: 'IdempotencyKeyReused' };

export interface Accepted {
  readonly refused: null;
  /** The cycle that was started or stopped; null for the other commands. */
  readonly cycle: Cycle | null;
}

export type Outcome = (Accepted | Refusal) & {
  /** The id of the first request with this idempotency key, where the outcome is a replay of its outcome. */
  readonly replayOf?: string;
};

export const ACCEPTED: Accepted = { refused: null, cycle: null };
