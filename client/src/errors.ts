// The client has one class for each error that Scrip sends, and one for each kind of connection failure. An unknown
// error from a newer version of Scrip is a plain ScripError. Errors never contain the API key.

import type { Cycle, ErrorName, Problem } from './generated.ts';

/** The facts from which a `ScripError` is made. */
export interface ErrorFacts {
  readonly status: number;
  readonly error: string;
  readonly title: string;
  readonly detail: string;
  readonly problem?: Problem;
  readonly idempotencyKey?: string;
  readonly holdId?: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class ScripError extends Error {
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The name of the error, such as `InsufficientFunds`. */
  readonly error: string;
  readonly title: string;
  /** Describes this occurrence of the error. */
  readonly detail: string;
  /** Identifies the request in Scrip's log; undefined if the response is not from Scrip. */
  readonly requestId: string | undefined;
  /** The problem document of the response; undefined if the response is not from Scrip. */
  readonly problem: Problem | undefined;
  /**
   * Set for writes. If you call again with this key, the write is applied only once. After a refusal, use a new key:
   * Scrip repeats the stored refusal.
   */
  readonly idempotencyKey: string | undefined;
  /** The hold that could not be captured or released; undefined for other calls. */
  readonly holdId: string | undefined;
  /** The delay from the `Retry-After` header; undefined if there is no such header. */
  readonly retryAfterMs: number | undefined;

  constructor({ status, error, title, detail, problem, idempotencyKey, holdId, retryAfterMs, cause }: ErrorFacts) {
    const request = problem?.request_id === undefined ? '' : ` (request ${problem.request_id})`;
    super(`${detail || title}${request}`, cause === undefined ? {} : { cause });
    this.name = error;
    this.status = status;
    this.error = error;
    this.title = title;
    this.detail = detail;
    this.requestId = problem?.request_id;
    this.problem = problem;
    this.idempotencyKey = idempotencyKey;
    this.holdId = holdId;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The balance does not cover the subtraction or the hold. In the case of a capture, the hold and the balance together
 * do not cover the amount, and the hold stays open. Nothing was changed.
 */
export class InsufficientFunds extends ScripError {
  readonly requested: number;
  readonly available: number;
  readonly shortfall: number;

  constructor(facts: ErrorFacts) {
    super(facts);
    const { requested, available, shortfall } = facts.problem as Required<Problem>;
    this.requested = requested;
    this.available = available;
    this.shortfall = shortfall;
  }
}

/** The end user already has an active cycle, which is in `cycle`. Nothing was changed. */
export class CycleAlreadyActive extends ScripError {
  readonly cycle: Cycle;

  constructor(facts: ErrorFacts) {
    super(facts);
    this.cycle = (facts.problem as Required<Problem>).cycle;
  }
}

/**
 * The balance would exceed 2^53−1 credits, now or at the next renewal. `available` credits can still be added. Nothing
 * was changed.
 */
export class BalanceTooLarge extends ScripError {
  readonly requested: number;
  readonly available: number;

  constructor(facts: ErrorFacts) {
    super(facts);
    const { requested, available } = facts.problem as Required<Problem>;
    this.requested = requested;
    this.available = available;
  }
}

/** At most `refundable` credits of the transaction can still be refunded. Nothing was refunded. */
export class RefundTooLarge extends ScripError {
  /** Undefined if the request had no `amount`. */
  readonly requested: number | undefined;
  readonly refundable: number;

  constructor(facts: ErrorFacts) {
    super(facts);
    const { requested, refundable } = facts.problem as Problem & { readonly refundable: number };
    this.requested = requested;
    this.refundable = refundable;
  }
}

/** Fields are missing, unknown or out of bounds; `errors` lists them. */
export class InvalidField extends ScripError {
  readonly errors: readonly { readonly path: string; readonly message: string }[];

  constructor(facts: ErrorFacts) {
    super(facts);
    this.errors = facts.problem?.errors ?? [];
  }
}

/** The end user has no recurring cycle to stop. */
export class CycleNotFound extends ScripError {}
/** The hold does not exist, has been captured or released, or has lapsed. */
export class HoldNotFound extends ScripError {}
/** The end user already has the maximum of 1,000 open holds. Nothing was held. */
export class TooManyHolds extends ScripError {}
/** The end user has no transaction with this ID. */
export class TransactionNotFound extends ScripError {}
/** The transaction did not spend credits: only subtractions and captures can be refunded. */
export class NotRefundable extends ScripError {}
/** The API key is missing, malformed, unknown or revoked. */
export class Unauthorized extends ScripError {}
/** The API key has only the `read` scope, but the call requires the `write` scope. */
export class Forbidden extends ScripError {}
/** The idempotency key was already used for a different request with the same `end_user_id`. */
export class IdempotencyKeyReused extends ScripError {}
/** The API key has reached its rate limit. Retry after `retryAfterMs`. Nothing was changed. */
export class TooManyRequests extends ScripError {}
/** Scrip is overloaded. Nothing was changed. */
export class Overloaded extends ScripError {}
/** Scrip's store is unavailable. Nothing was changed. */
export class StoreUnavailable extends ScripError {}
/**
 * It is unknown whether the write was applied. If you call again with `idempotencyKey`, the write is applied only once.
 */
export class OutcomeUnknown extends ScripError {}
/** Scrip failed. To find the reason, search Scrip's log for `requestId`. */
export class Internal extends ScripError {}
export class BadRequest extends ScripError {}
export class ExpectationFailed extends ScripError {}
export class HeadersTooLarge extends ScripError {}
export class InvalidJson extends ScripError {}
export class MethodNotAllowed extends ScripError {}
export class NotFound extends ScripError {}
export class PayloadTooLarge extends ScripError {}
export class RequestTimeout extends ScripError {}
export class UnsupportedMediaType extends ScripError {}

/** No response arrived, or only part of a response. It is unknown whether a write was applied. */
export class ConnectionFailed extends ScripError {}
/** No complete response arrived within `timeoutMs`. It is unknown whether a write was applied. */
export class TimedOut extends ScripError {}
/**
 * The response is not from Scrip. It can be a proxy's error page or a redirect, for example. It is unknown whether a
 * write was applied.
 */
export class UnexpectedAnswer extends ScripError {}

type ErrorClass = new (facts: ErrorFacts) => ScripError;

/** The names of all errors that Scrip sends. `ErrorName` contains only the errors in the OpenAPI document. */
type KnownErrorName =
  | ErrorName
  | 'ExpectationFailed'
  | 'IdempotencyKeyReused'
  | 'MethodNotAllowed'
  | 'NotFound'
  | 'TooManyRequests';

/** The class of each error. If a documented error has no class, the compiler reports an error. */
export const ERROR_CLASSES: Readonly<Record<KnownErrorName, ErrorClass>> = {
  BadRequest,
  BalanceTooLarge,
  CycleAlreadyActive,
  CycleNotFound,
  ExpectationFailed,
  Forbidden,
  HeadersTooLarge,
  HoldNotFound,
  IdempotencyKeyReused,
  InsufficientFunds,
  Internal,
  InvalidField,
  InvalidJson,
  MethodNotAllowed,
  NotFound,
  NotRefundable,
  OutcomeUnknown,
  Overloaded,
  PayloadTooLarge,
  RefundTooLarge,
  RequestTimeout,
  StoreUnavailable,
  TooManyHolds,
  TooManyRequests,
  TransactionNotFound,
  Unauthorized,
  UnsupportedMediaType,
};

/**
 * The members that an error class requires in the problem document. If a required member is missing, the error is a
 * plain ScripError.
 */
const REQUIRED_MEMBERS: ReadonlyMap<string, readonly (keyof Problem)[]> = new Map([
  ['BalanceTooLarge', ['requested', 'available']],
  ['CycleAlreadyActive', ['cycle']],
  ['InsufficientFunds', ['requested', 'available', 'shortfall']],
  ['RefundTooLarge', ['refundable']],
]);

export function errorOf(facts: ErrorFacts & { readonly problem: Problem }): ScripError {
  const { error, problem } = facts;
  const isComplete = (REQUIRED_MEMBERS.get(error) ?? []).every((member) => problem[member] !== undefined);
  const known = Object.hasOwn(ERROR_CLASSES, error) && isComplete ? ERROR_CLASSES[error as KnownErrorName] : ScripError;
  return new known(facts);
}
