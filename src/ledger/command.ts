// The commands of the ledger and their outcomes. A refusal is a returned value: a rule said no, and nothing changed.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { Actor, Note } from './posting.ts';

export interface EndUserKey {
  /** The account of the API key or of the signed-in user; never taken from a request body. */
  readonly account: number;
  /** A UUID in lower case. */
  readonly endUser: string;
}

/** A unique text for an end user: an account is a number, and a UUID has no slash. */
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

/** An idempotency key, which makes it safe to send a request again. */
export interface Idempotency {
  /** 1 … 255 characters. */
  readonly key: string;
  /** The id of this request; a replayed response carries the id of the first one. */
  readonly requestId: string;
}

interface Request extends EndUserKey {
  readonly actor: Actor;
  /** Null or absent: if the request is sent again, it has its effect again. */
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
  /** `replace` stops an active cycle and starts the new one in one step; `refuse` refuses to start a second cycle. */
  readonly onActive: 'refuse' | 'replace';
}

export interface StopCycle extends Request {
  readonly kind: 'stop-cycle';
}

/** A command from a client, a user of the console or an import. */
export type WriteCommand = Add | Subtract | StartCycle | StopCycle;

/** Stores the renewals that are due, for example from the renewal job. */
export interface Settle extends EndUserKey {
  readonly kind: 'settle';
}

export type Command = WriteCommand | Settle;

/** What a store has to load before a command can be decided, besides the live cycles of its end user. */
export interface Needs {
  /** The idempotency key, whose record decides if there is one; null for a command without a key. */
  readonly idempotencyKey: string | null;
  /** Whether the command can store something for an end user without any rows. */
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
  /** The idempotency key was used for a different request. */
  | { readonly refused: 'IdempotencyKeyReused' };

export interface Accepted {
  readonly refused: null;
  /** The cycle that was started or stopped; null for the other commands. */
  readonly cycle: Cycle | null;
}

export type Outcome = (Accepted | Refusal) & {
  /** Only for a replay: the id of the first request with this idempotency key. */
  readonly replayOf?: string;
};

export const ACCEPTED: Accepted = { refused: null, cycle: null };
