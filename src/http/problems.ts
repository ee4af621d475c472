// All problems that a response can report. The compiler rejects a problem without a status or a text.

import type { Refusal, WriteCommand } from '../ledger/command.ts';
import { OPEN_HOLDS_MAX } from '../ledger/hold.ts';
import type { FaultCode } from '../store/store-fault.ts';
import { BODY_BYTES_MAX, FIELD_ERRORS_MAX, HEADER_BYTES_MAX, HEADERS_MAX } from './limits.ts';

/** Problems with the request itself, which Scrip detects before the request reaches the ledger. */
type RequestCode =
  | 'BadRequest'
  | 'ExpectationFailed'
  | 'Forbidden'
  | 'HeadersTooLarge'
  | 'InvalidField'
  | 'InvalidJson'
  | 'MethodNotAllowed'
  | 'NotFound'
  | 'PayloadTooLarge'
  | 'RequestTimeout'
  | 'TooManyRequests'
  | 'Unauthorized'
  | 'UnsupportedMediaType';

export type ProblemCode = Refusal['refused'] | FaultCode | 'Overloaded' | RequestCode;

export interface FieldError {
  /** JSON Pointer to the field; empty for the whole body; `Idempotency-Key` for that header. */
  readonly path: string;
  readonly message: string;
}

interface Amounts {
  readonly requested: number;
  readonly available: number;
}

type Spending = Extract<WriteCommand['kind'], 'subtract' | 'hold' | 'capture'>;

interface Refundable {
  /** Null if the request had no amount. */
  readonly requested: number | null;
  readonly refundable: number;
}

interface Problem {
  readonly status: number;
  /** A short description, which does not depend on the request. */
  readonly title: string;
  /** What is wrong with this request, or why it failed; a function if the text depends on the request. */
  readonly detail: string | ((particulars: never) => string);
  readonly remedy: string;
  /** The text that console forms show instead of `detail`. */
  readonly inForm?: string;
}

const SPENT_FROM: Readonly<Record<Spending, string>> = {
  subtract: 'The balance is',
  hold: 'The balance is',
  capture: 'The hold and the balance together have',
};
const NOT_SPENT: Readonly<Record<Spending, string>> = {
  subtract: 'Nothing was subtracted.',
  hold: 'Nothing was held.',
  capture: 'Nothing was captured, and the hold stays open.',
};

export const PROBLEMS = {
  BadRequest: {
    status: 400,
    title: 'Malformed HTTP request',
    detail: 'The request is not valid HTTP. The connection is closed.',
    remedy: 'Send the request with an HTTP library. If the request goes through a proxy, check what the proxy sends.',
  },
  InvalidJson: {
    status: 400,
    title: 'Invalid JSON',
    detail: (reason: string) => `The body is not valid JSON: ${reason}.`,
    remedy: 'Send one JSON object, encoded in UTF-8.',
  },
  Unauthorized: {
    status: 401,
    title: 'Missing or invalid API key',
    detail: 'The request has no valid API key. Send one `Authorization: Bearer <API key>` header.',
    remedy: 'Send an API key that is not revoked. `scrip key list` and the console show which keys are revoked.',
  },
  InsufficientFunds: {
    status: 402,
    title: 'Insufficient credits',
    detail: ({ requested, available, spending }: Amounts & { readonly spending: Spending }) =>
      `${SPENT_FROM[spending]} ${credits(available)}, less than the ${grouped(requested)} requested. ${NOT_SPENT[spending]}`,
    remedy: 'Request at most `available` credits, or add credits first.',
  },
  Forbidden: {
    status: 403,
    title: 'API key lacks the required scope',
    detail: 'This API key has only the `read` scope, but this call requires the `write` scope.',
    remedy: 'Use an API key with the `write` scope.',
  },
  CycleNotFound: {
    status: 404,
    title: 'No recurring cycle to stop',
    detail: 'This end user has no recurring cycle to stop. Nothing was changed.',
    remedy: 'If you expected a cycle, check `end_user_id`. Otherwise, no action is needed.',
  },
  HoldNotFound: {
    status: 404,
    title: 'No such open hold',
    detail:
      'This end user has no open hold with this `hold_id`: the hold was captured or released, has lapsed, or never existed. Nothing was changed.',
    remedy:
      '`GET /get-holds` lists the open holds. If the hold has lapsed, its credits have returned to the balance, except credits whose cycle or period has ended. To charge the end user after a hold has lapsed, send `POST /subtract`. To keep holds open longer, send a larger `expires_in_seconds`.',
    inForm: 'This hold is no longer open. Nothing was changed.',
  },
  TransactionNotFound: {
    status: 404,
    title: 'Transaction not found',
    detail: 'This end user has no transaction with this `transaction_id`. Nothing was changed.',
    remedy: 'Send the `Transaction-Id` and the `end_user_id` of the subtraction or capture.',
  },
  NotFound: {
    status: 404,
    title: 'Path not found',
    detail: (path: string) => `The path ${path} does not exist. /docs lists the paths of the API.`,
    remedy:
      'Check the path: `/docs` lists the paths of the API. The path `/test-clock` exists only on a ledger with a test clock.',
  },
  MethodNotAllowed: {
    status: 405,
    title: 'Method not allowed',
    detail: ({ path, allow, method }: { path: string; allow: string; method: string }) =>
      `${path} accepts ${allow}, not ${method}.`,
    remedy: 'Use one of the methods in the `Allow` header.',
  },
  RequestTimeout: {
    status: 408,
    title: 'Request timeout',
    detail: 'The request did not arrive in time. The connection is closed.',
    remedy:
      'Send the request again. The headers must arrive within 10 seconds, and the whole request within 30 seconds.',
  },
  CycleAlreadyActive: {
    status: 409,
    title: 'A cycle is already active',
    detail: 'A cycle is already active. Nothing was changed. To replace the active cycle, send "on_active": "replace".',
    remedy:
      'The `cycle` field shows the active cycle. To replace this cycle now, send `"on_active": "replace"`. To replace it at the end of its period, send `"on_active": "at_period_end"`. To keep it, do nothing.',
  },
  TooManyHolds: {
    status: 409,
    title: 'Too many open holds',
    detail: `This end user already has the maximum of ${grouped(OPEN_HOLDS_MAX)} open holds. Nothing was held.`,
    remedy: 'Capture or release holds that are no longer needed. `GET /get-holds` lists the open holds.',
  },
  NotRefundable: {
    status: 409,
    title: 'Transaction cannot be refunded',
    detail:
      'This transaction did not spend credits: only subtractions and captures can be refunded. Nothing was changed.',
    remedy: 'Send the `Transaction-Id` of a subtraction or a capture.',
  },
  RefundTooLarge: {
    status: 409,
    title: 'Refund exceeds the refundable credits',
    detail: ({ requested, refundable }: Refundable) =>
      refundable === 0 || requested === null
        ? 'All credits of this transaction have already been refunded. Nothing was changed.'
        : `Only ${credits(refundable)} of this transaction can still be refunded, less than the ${grouped(requested)} requested. Nothing was refunded.`,
    remedy: 'Refund at most `refundable` credits, or omit `amount` to refund all of them.',
  },
  PayloadTooLarge: {
    status: 413,
    title: 'Body too large',
    detail: `The body exceeds ${grouped(BODY_BYTES_MAX)} bytes.`,
    remedy: 'Send a smaller body.',
  },
  UnsupportedMediaType: {
    status: 415,
    title: 'Unsupported media type',
    detail: 'The body must be sent with `Content-Type: application/json`.',
    remedy: 'Send uncompressed JSON, with `Content-Type: application/json`.',
  },
  ExpectationFailed: {
    status: 417,
    title: 'Unsupported expectation',
    detail: (expectation: string) => `The header \`Expect: ${expectation}\` is not supported.`,
    remedy: 'Omit the `Expect` header, or send `Expect: 100-continue`.',
  },
  InvalidField: {
    status: 422,
    title: 'Invalid field',
    detail: (errors: readonly FieldError[]) =>
      errors.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; '),
    remedy: 'Correct the fields that `errors` lists. Each of these fields is missing, unknown or invalid.',
  },
  BalanceTooLarge: {
    status: 422,
    title: 'Maximum balance exceeded',
    detail: ({ requested, available }: Amounts) =>
      available === 0
        ? "No more credits fit within this end user's maximum balance, now or at the next renewal with its full rollover. Nothing was changed."
        : `Only ${grouped(available)} more ${available === 1 ? 'credit fits' : 'credits fit'} within this end user's maximum balance, now and at the next renewal with its full rollover, but the request needs room for ${grouped(requested)}. Nothing was changed.`,
    remedy:
      'Request at most `available` credits, or a smaller `rollover_max`. An end user can have at most 2^53−1 credits, including held credits.',
  },
  IdempotencyKeyReused: {
    status: 422,
    title: 'Idempotency key reused',
    detail:
      'An earlier request with this Idempotency-Key had different fields or a different path. Nothing was changed.',
    remedy: 'Use a new key for each new operation. Use the same key only to send the same request again.',
    inForm:
      'This form was already submitted with different values. The new values were not applied. Check the result below.',
  },
  TooManyRequests: {
    status: 429,
    title: 'Rate limit exceeded',
    detail: 'This API key has exceeded its rate limit. Nothing was changed.',
    remedy: 'Send the request again after `Retry-After` seconds.',
  },
  HeadersTooLarge: {
    status: 431,
    title: 'Headers too large',
    detail: `The request has more than ${HEADERS_MAX} headers, or its headers exceed ${grouped(HEADER_BYTES_MAX)} bytes. The connection is closed.`,
    remedy: 'Send fewer or shorter headers.',
  },
  Internal: {
    status: 500,
    title: 'Internal error',
    detail: 'Internal error. The server log contains the details under this request_id.',
    remedy:
      'Send the `request_id` to the operator, who can find the cause in the server log. If the ledger might be corrupt, Scrip stops writing.',
    inForm: 'Internal error. Ask your administrator to check the server log before you try again.',
  },
  Overloaded: {
    status: 503,
    title: 'Server overloaded; nothing was changed',
    detail: 'The server is busy. Nothing was changed; try again in a moment.',
    remedy: 'Send the request again after `Retry-After` seconds.',
  },
  StoreUnavailable: {
    status: 503,
    title: 'Database unavailable; nothing was changed',
    detail: 'The database is unavailable. Nothing was changed; try again in a moment.',
    remedy: 'Send the request again after `Retry-After` seconds.',
  },
  OutcomeUnknown: {
    status: 503,
    title: 'Outcome unknown',
    detail:
      'The database failed before it confirmed the write, so the write may or may not have been applied. If the request had an Idempotency-Key, send it again with the same key. Otherwise, check whether the write was applied before you send it again.',
    remedy:
      'If the request had an `Idempotency-Key`, send it again with the same key. Otherwise, check whether the write was applied before you send it again.',
    inForm:
      'Outcome unknown: the change may or may not have been made. Submit the form again without changes: a form that is submitted twice takes effect only once.',
  },
} satisfies Readonly<Record<ProblemCode, Problem>>;

/** The `detail` of `NotFound` if the ledger has no test clock. */
export const NO_TEST_CLOCK =
  'This ledger has no test clock. To use a test clock, start Scrip with --test-clock on a new ledger.';

/** Problems whose `error_code` is not derived from their name. Published clients of this API expect these codes. */
const ERROR_CODES: Partial<Record<ProblemCode, string>> = {
  CycleAlreadyActive: 'ACTIVE_CYCLE_EXISTS',
  CycleNotFound: 'NO_ACTIVE_CYCLE',
};

/**
 * @returns the code in `ERROR_CODES`, if any; otherwise the name of the problem in upper case, such as
 * `INSUFFICIENT_FUNDS`
 */
export function errorCodeOf(code: ProblemCode): string {
  return ERROR_CODES[code] ?? code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}

/** The `error_code` for an amount of 0 or less. */
export const AMOUNT_NEGATIVE = 'AMOUNT_NEGATIVE';

/** Problems whose `detail` does not depend on the request. */
export type PlainProblem = {
  [Code in ProblemCode]: (typeof PROBLEMS)[Code]['detail'] extends string ? Code : never;
}[ProblemCode];

/** The text that a console form shows for a problem. */
export function formText(code: PlainProblem): string {
  const problem: Problem = PROBLEMS[code];
  return problem.inForm ?? PROBLEMS[code].detail;
}

/** @param kind the kind of the refused command; the text of `InsufficientFunds` depends on the kind */
export function refusalDetail(refusal: Refusal, kind: WriteCommand['kind'] = 'subtract'): string {
  switch (refusal.refused) {
    case 'InsufficientFunds': {
      const spending = kind === 'hold' || kind === 'capture' ? kind : 'subtract';
      return PROBLEMS.InsufficientFunds.detail({ ...refusal, spending });
    }
    case 'BalanceTooLarge':
      return PROBLEMS.BalanceTooLarge.detail(refusal);
    case 'RefundTooLarge':
      return PROBLEMS.RefundTooLarge.detail(refusal);
    default:
      return PROBLEMS[refusal.refused].detail;
  }
}

/** Formats a number with commas as thousands separators. `toLocaleString` takes fifty times as long. */
function grouped(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

function credits(amount: number): string {
  return `${grouped(amount)} ${amount === 1 ? 'credit' : 'credits'}`;
}

/** Thrown when Scrip detects an invalid request. The error handler sends the problem document. */
export class InvalidRequest extends Error {
  readonly code: RequestCode;
  readonly errors: readonly FieldError[];
  /** The `error_code` of the response; null to use `errorCodeOf(code)`. */
  readonly errorCode: string | null;

  constructor(code: RequestCode, detail: string, errors: readonly FieldError[] = [], errorCode: string | null = null) {
    super(detail);
    this.name = 'InvalidRequest';
    this.code = code;
    this.errors = errors;
    this.errorCode = errorCode;
  }
}

/**
 * @param all only the first `FIELD_ERRORS_MAX` are named in the response
 * @param errorCode the `error_code` of the response; null to use `INVALID_FIELD`
 */
export function invalidFields(all: readonly FieldError[], errorCode: string | null = null): InvalidRequest {
  const errors = all.slice(0, FIELD_ERRORS_MAX);
  return new InvalidRequest('InvalidField', PROBLEMS.InvalidField.detail(errors), errors, errorCode);
}

/** @param path as in `FieldError` */
export function invalidField(path: string, message: string): InvalidRequest {
  return invalidFields([{ path, message }]);
}

/** JSON Pointer (RFC 6901) to a field of the body. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
