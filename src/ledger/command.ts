// The commands of the ledger and their outcomes. If a rule forbids a command, the outcome is a refusal. Refusals are
// returned, not thrown.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { HoldEnd } from './hold.ts';
import type { Instant } from './instant.ts';
import type { Actor, Note } from './posting.ts';
import type { TransactionId } from './transaction-id.ts';

export interface EndUserKey {
  /** The account of the API key or of the signed-in console user; never taken from a request body. */
  readonly account: number;
  /** A UUID in lower case. */
  readonly endUser: string;
}

/** A string that identifies an end user: `<account>/<UUID>`. */
export function endUserText({ account, endUser }: EndUserKey): string {
  return `${account}/${endUser}`;
}

/** The inverse of `endUserText`. */
export function endUserOf(text: string): EndUserKey {
  const slash = text.indexOf('/');
  return { account: Number(text.slice(0, slash)), endUser: text.slice(slash + 1) };
}

export function isSameEndUser(a: EndUserKey, b: EndUserKey): boolean {
  return a.endUser === b.endUser && a.account === b.account;
}

export interface Idempotency {
  /** 1 … 255 characters. */
  readonly key: string;
  /** The ID of this request. A replayed refusal shows the ID of the first request. */
  readonly requestId: string;
}

interface Request extends EndUserKey {
  readonly actor: Actor;
  /** If null or absent, a repeated request takes effect again. */
  readonly idempotency?: Idempotency | null;
  readonly note?: Note | null;
}

/** Exactly one of `validityDays` and `validityMonths` is set. */
interface Grant extends Request {
  readonly amount: Amount;
  readonly validityDays: number | null;
  readonly validityMonths?: number | null;
}

export interface Add extends Grant {
  readonly kind: 'add';
}

export interface Subtract extends Request {
  readonly kind: 'subtract';
  readonly amount: Amount;
}

export interface StartCycle extends Grant {
  readonly kind: 'start-cycle';
  /** The maximum number of unused credits that roll over; 0 if absent. */
  readonly rolloverMax?: Amount | 0;
  readonly onActive: OnActive;
  /**
   * The active cycle that the user has seen. If another cycle is active, or another plan is scheduled, the command is
   * refused with `CycleAlreadyActive`. If absent, the command applies to any active cycle.
   */
  readonly seen?: SeenCycle | null;
}

export interface SeenCycle {
  readonly cycle: TransactionId;
  /** The ID of the transaction that scheduled the next plan; null if none was scheduled. */
  readonly next: TransactionId | null;
}

/**
 * What to do if a recurring cycle is already active: refuse the command, replace the active cycle immediately, or start
 * the new plan when the current period ends.
 */
export type OnActive = 'refuse' | 'replace' | 'at_period_end';

export interface StopCycle extends Request {
  readonly kind: 'stop-cycle';
}

export interface Hold extends Request {
  readonly kind: 'hold';
  readonly amount: Amount;
  readonly expiresInSeconds: number;
}

export interface Capture extends Request {
  readonly kind: 'capture';
  readonly holdId: TransactionId;
  /** Null to capture all credits of the hold. */
  readonly amount: Amount | null;
}

export interface Release extends Request {
  readonly kind: 'release';
  readonly holdId: TransactionId;
}

export interface Refund extends Request {
  readonly kind: 'refund';
  /** The subtraction or capture to refund. */
  readonly transactionId: TransactionId;
  /** Null to refund all credits that are not refunded yet. */
  readonly amount: Amount | null;
  /**
   * Refunded credits from ended periods return in a new cycle that is valid for this number of days. If null, these
   * credits expire.
   */
  readonly validityDays: number | null;
}

/** A write by an API client or a console user. */
export type WriteCommand = Add | Subtract | StartCycle | StopCycle | Hold | Capture | Release | Refund;

/** Applies the due events of an end user. */
export interface Settle extends EndUserKey {
  readonly kind: 'settle';
}

export type Command = WriteCommand | Settle;

/** What a store must load for a command, besides the live cycles and the due holds of the end user. */
export interface Needs {
  /** The idempotency key; null if there is none. If the key has a record, the record determines the outcome. */
  readonly idempotencyKey: string | null;
  /** Whether the command can store data for an end user who has no stored data yet. */
  readonly canCreate: boolean;
  /** Whether the command needs all open holds. If not, the store can load only the due holds, which is faster. */
  readonly allHolds: boolean;
  /** The transaction to refund; null for other commands. The store also loads earlier refunds of the transaction. */
  readonly transaction: TransactionId | null;
}

export function needs(command: Command): Needs {
  const idempotencyKey = command.kind === 'settle' ? null : (command.idempotency?.key ?? null);
  const grants = command.kind === 'add' || command.kind === 'start-cycle';
  const canCreate = grants || idempotencyKey !== null;
  const allHolds = command.kind !== 'subtract' && command.kind !== 'stop-cycle' && command.kind !== 'settle';
  return { idempotencyKey, canCreate, allHolds, transaction: command.kind === 'refund' ? command.transactionId : null };
}

export type Refusal =
  | { readonly refused: 'InsufficientFunds'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'BalanceTooLarge'; readonly requested: Amount; readonly available: Amount }
  | { readonly refused: 'CycleAlreadyActive'; readonly cycle: Cycle }
  | { readonly refused: 'CycleNotFound' }
  | { readonly refused: 'HoldNotFound' }
  | { readonly refused: 'TooManyHolds' }
  | { readonly refused: 'TransactionNotFound' }
  /** The transaction is neither a subtraction nor a capture. */
  | { readonly refused: 'NotRefundable' }
  | { readonly refused: 'RefundTooLarge'; readonly requested: Amount | null; readonly refundable: Amount }
  /** The key was already used for a different request. */
  | { readonly refused: 'IdempotencyKeyReused' };

/** A hold that was created or closed. */
export interface HoldResult {
  readonly id: TransactionId;
  readonly createdAt: Instant;
  readonly expiresAt: Instant;
  readonly status: 'open' | Exclude<HoldEnd, 'lapsed'>;
  readonly amount: Amount;
  readonly captured: Amount;
  /** The credits that returned to periods that have not ended. */
  readonly returned: Amount;
  /** The credits that were not captured and expired because their periods had ended. */
  readonly expired: Amount;
}

export interface RefundResult {
  /** Credits that the end user can spend again. */
  readonly restored: Amount;
  /** Credits that expired because their periods had ended. */
  readonly expired: Amount;
}

export interface Accepted {
  readonly refused: null;
  /** Null if nothing was recorded, for example when a canceled cycle is stopped again. */
  readonly transactionId: TransactionId | null;
  /** The cycle that was started or stopped, or the active cycle if a plan was scheduled. */
  readonly cycle?: Cycle;
  readonly hold?: HoldResult;
  readonly refund?: RefundResult;
}

export type Outcome = (Accepted | Refusal) & {
  /** Only in a replay: the ID of the first request with this idempotency key. */
  readonly replayOf?: string;
};
