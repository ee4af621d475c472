// What can go wrong, a class each: the errors that the service names, and those that befall a call on its way. A name
// that this client does not know, from a newer service, is a ScripError like the others. No API key is in any of them.

import type { Cycle, ErrorName, Problem } from './generated.ts';

export interface ErrorFacts {
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** The name to program against. */
  readonly error: string;
  readonly title: string;
  /** What is particular to this occurrence. */
  readonly detail: string;
  readonly problem?: Problem;
  /** Of a write: the same call with this key is the same write, done at most once. */
  readonly idempotencyKey?: string;
  /** For how long the service asked not to be called again. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class ScripError extends Error {
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** The name to program against. */
  readonly error: string;
  readonly title: string;
  readonly detail: string;
  /** To be found again in the log of the service; absent when it was not the service that answered. */
  readonly requestId: string | undefined;
  /** The whole answer; absent when it was not one of the service. */
  readonly problem: Problem | undefined;
  /** Of a write: the same call with this key is the same write, done at most once. */
  readonly idempotencyKey: string | undefined;
  /** For how long the service asked not to be called again; absent when it did not. */
  readonly retryAfterMs: number | undefined;

  constructor({ status, error, title, detail, problem, idempotencyKey, retryAfterMs, cause }: ErrorFacts) {
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
    this.retryAfterMs = retryAfterMs;
  }
}

/** The balance does not cover the subtraction. Nothing was subtracted. */
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

/** The end user has an active cycle, which is in the error. Nothing was changed. */
export class CycleAlreadyActive extends ScripError {
  readonly cycle: Cycle;

  constructor(facts: ErrorFacts) {
    super(facts);
    this.cycle = (facts.problem as Required<Problem>).cycle;
  }
}

/** The end user would hold more than 2^53−1 credits; `available` is what does fit. Nothing was added. */
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

/** A field is missing, unknown or out of bounds; `errors` names each. */
export class InvalidField extends ScripError {
  readonly errors: readonly { readonly path: string; readonly message: string }[];

  constructor(facts: ErrorFacts) {
    super(facts);
    this.errors = facts.problem?.errors ?? [];
  }
}

/** There is no cycle to stop. */
export class CycleNotFound extends ScripError {}
/** The API key is missing, malformed, unknown or revoked. */
export class Unauthorized extends ScripError {}
/** The API key may only read. */
export class Forbidden extends ScripError {}
/** The idempotency key was used for another request of this end user. */
export class IdempotencyKeyReused extends ScripError {}
/** The API key has made too many requests; `retryAfterMs` says when to come back. Nothing happened. */
export class TooManyRequests extends ScripError {}
/** Too much is waiting. Nothing happened. */
export class Overloaded extends ScripError {}
/** The ledger cannot be written or read just now. Nothing happened. */
export class StoreUnavailable extends ScripError {}
/** The write may have happened or not; the same call with `idempotencyKey` does it once in any case. */
export class OutcomeUnknown extends ScripError {}
/** The service failed. */
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

/** No answer came, or it broke off. A write may have happened or not. */
export class ConnectionFailed extends ScripError {}
/** No whole answer came in time. A write may have happened or not. */
export class TimedOut extends ScripError {}
/** The answer is none of Scrip's: a page of a proxy, a redirect, an empty body. A write may have happened or not. */
export class UnexpectedAnswer extends ScripError {}

type ErrorClass = new (facts: ErrorFacts) => ScripError;

/** The names that the service documents, and those that come before there is an operation or with a newer service. */
type Named =
  | ErrorName
  | 'ExpectationFailed'
  | 'IdempotencyKeyReused'
  | 'MethodNotAllowed'
  | 'NotFound'
  | 'TooManyRequests';

/** Does not compile when the service documents an error that has no class. */
export const ERROR_CLASSES: Readonly<Record<Named, ErrorClass>> = {
  BadRequest,
  BalanceTooLarge,
  CycleAlreadyActive,
  CycleNotFound,
  ExpectationFailed,
  Forbidden,
  HeadersTooLarge,
  IdempotencyKeyReused,
  InsufficientFunds,
  Internal,
  InvalidField,
  InvalidJson,
  MethodNotAllowed,
  NotFound,
  OutcomeUnknown,
  Overloaded,
  PayloadTooLarge,
  RequestTimeout,
  StoreUnavailable,
  TooManyRequests,
  Unauthorized,
  UnsupportedMediaType,
};

/** What a class promises beyond a ScripError must be in the answer. */
const NEEDED: ReadonlyMap<string, readonly (keyof Problem)[]> = new Map([
  ['BalanceTooLarge', ['requested', 'available']],
  ['CycleAlreadyActive', ['cycle']],
  ['InsufficientFunds', ['requested', 'available', 'shortfall']],
]);

/** The error that a problem document stands for. */
export function errorOf(facts: ErrorFacts & { readonly problem: Problem }): ScripError {
  const { error, problem } = facts;
  const isWhole = (NEEDED.get(error) ?? []).every((member) => problem[member] !== undefined);
  const known = Object.hasOwn(ERROR_CLASSES, error) && isWhole ? ERROR_CLASSES[error as Named] : ScripError;
  return new known(facts);
}
