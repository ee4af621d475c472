// The commands of the ledger and their outcomes. A refusal is a returned value: a rule said no, and nothing changed.

import type { Amount } from './amount.ts';
import type { Cycle } from './cycle.ts';
import type { HoldEnd } from './hold.ts';
import type { Instant } from './instant.ts';
import type { Actor, Note } from './posting.ts';
import type { TransactionId } from './transaction-id.ts';

export interface EndUserKey {
  /** The account of the API key or of the signed-in user; never taken from a request body. */
  readonly account: number;
  /** A UUID in lower case. */
  readonly endUser: string;
}

/** A text that is different for each end user. */
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

/** An idempotency key, which makes it safe to send a request again. */
export interface Idempotency {
  /** 1 … 255 characters. */
  readonly key: string;
  /** The id of this request. A replayed response has the id of the first request. */
  readonly requestId: string;
}

interface Request extends EndUserKey {
  readonly actor: Actor;
  /** If null or absent, a request that is sent again takes effect again. */
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

export interface Hold extends Request {
  readonly kind: 'hold';
  readonly amount: Amount;
  readonly expiresInSeconds: number;
}

export interface Capture extends Request {
  readonly kind: 'capture';
  readonly holdId: TransactionId;
  /** Null for all credits of the hold. */
  readonly amount: Amount | null;
}

export interface Release extends Request {
  readonly kind: 'release';
  readonly holdId: TransactionId;
}

export interface Refund extends Request {
  readonly kind: 'refund';
  /** The subtraction or capture that is refunded. */
  readonly transactionId: TransactionId;
  /** Null for all credits that are not refunded yet. */
  readonly amount: Amount | null;
  /** The validity of the new cycle for credits of ended cycles; null if these credits are not restored. */
  readonly validityDays: number | null;
}

/** A write that a client or a user of the console can request. */
export type WriteCommand = Add | Subtract | StartCycle | StopCycle | Hold | Capture | Release | Refund;

/** Stores the renewals that are due, for example from the renewal job. */
export interface Settle extends EndUserKey {
  readonly kind: 'settle';
}

export type Command = WriteCommand | Settle;

/** The data that a store must load to decide a command, besides the live cycles and the due holds of the end user. */
export interface Needs {
  /** The idempotency key: if it has a record, the record determines the outcome. Null for a command without a key. */
  readonly idempotencyKey: string | null;
  /** Whether the command can store the first rows of an end user. */
  readonly canCreate: boolean;
  /**
   * Whether the command needs all open holds. If not, the store may load only the holds that are due, which is faster.
   */
  readonly allHolds: boolean;
  /** The transaction to load together with its refunds; null for commands other than refunds. */
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
  /** The idempotency key belongs to another request. */
  | { readonly refused: 'IdempotencyKeyReused' };

/** A hold that was created or closed. */
export interface HoldResult {
  readonly id: TransactionId;
  readonly createdAt: Instant;
  readonly expiresAt: Instant;
  readonly status: 'open' | Exclude<HoldEnd, 'lapsed'>;
  /** The credits that were held. */
  readonly amount: Amount;
  /** The credits that were spent. */
  readonly captured: Amount;
  /** The credits that returned to running cycles. */
  readonly returned: Amount;
  /** The credits that were not captured and are lost, because their cycles have ended. */
  readonly expired: Amount;
}

export interface RefundResult {
  /** Credits that can be spent again. */
  readonly restored: Amount;
  /** Credits of cycles that have ended. */
  readonly expired: Amount;
}

export interface Accepted {
  readonly refused: null;
  /** Null if nothing was recorded, as when a canceled cycle is stopped again. */
  readonly transactionId: TransactionId | null;
  /** The cycle that was started or stopped. */
  readonly cycle?: Cycle;
  readonly hold?: HoldResult;
  readonly refund?: RefundResult;
}

export type Outcome = (Accepted | Refusal) & {
  /** Only for a replay: the id of the first request with this idempotency key. */
  readonly replayOf?: string;
};
