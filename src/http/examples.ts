// An example of each answer and of each problem, for the OpenAPI document to show. They tell one story: an end user with
// the credits of a trial and a subscription beside it. Tests hold each to its schema and to what the service answers.

import { FAULT_DETAILS, PROBLEMS, type ProblemCode } from './problem.ts';
import { EXAMPLE_USER } from './schemas.ts';

interface Example {
  readonly summary: string;
  readonly value: unknown;
}

type Extras = { readonly detail: string; readonly [member: string]: unknown };

const REQUEST_ID = 'mwotq4em-co1-7';

const CYCLE = {
  end_user_id: EXAMPLE_USER,
  amount: 1000,
  created_at: '2026-11-20T08:00:00.123',
  current_cycle_start: '2026-11-20T08:00:00.123Z',
  current_cycle_end: '2026-12-21T08:00:00.123Z',
  cycle_type: 'recurring',
  status: 'active',
} as const;

export const ADDITION = { end_user_id: EXAMPLE_USER, amount: 100 };
export const SUBTRACTION = { end_user_id: EXAMPLE_USER, amount: 130 };
export const STARTED_CYCLE = CYCLE;
export const STOPPED_CYCLE = { ...CYCLE, status: 'canceled' };
export const BALANCE = {
  end_user_id: EXAMPLE_USER,
  active_balance_by_cycle: [
    {
      cycle_start: '2026-11-18T10:16:02.854Z',
      cycle_end: '2026-12-02T10:16:02.854Z',
      amount: 0,
      starting_amount: 100,
      status: 'active',
      cycle_type: 'one-time',
    },
    {
      cycle_start: '2026-11-20T08:00:00.123Z',
      cycle_end: '2026-12-21T08:00:00.123Z',
      amount: 970,
      starting_amount: 1000,
      status: 'active',
      cycle_type: 'recurring',
    },
  ],
  active_balance: 970,
};
const PARTICULARS: Readonly<Record<ProblemCode, Extras>> = {
  BadRequest: { detail: 'A request names the host that it is for.' },
  InvalidJson: { detail: 'The body is empty; send a JSON object.' },
  Unauthorized: { detail: 'Send one header `Authorization: Bearer <API key>` with a key that is not revoked.' },
  InsufficientFunds: {
    detail: '5000 credits were requested and 970 are available.',
    requested: 5000,
    available: 970,
    shortfall: 4030,
  },
  Forbidden: { detail: 'This key has the scope `read`; the call needs one with the scope `write`.' },
  CycleNotFound: { detail: 'There is no cycle to stop.' },
  NotFound: { detail: 'There is nothing at /credits. The paths are listed at /docs.' },
  MethodNotAllowed: { detail: '/add takes POST, not GET.' },
  RequestTimeout: { detail: 'The connection is closed.' },
  CycleAlreadyActive: {
    detail: 'Nothing was changed. To replace the active cycle, send "on_active": "replace".',
    cycle: CYCLE,
  },
  PayloadTooLarge: { detail: 'A body may have 65536 bytes.' },
  UnsupportedMediaType: { detail: 'Send the body with `Content-Type: application/json`.' },
  ExpectationFailed: { detail: 'Scrip does not know the expectation a-miracle.' },
  InvalidField: {
    detail: '/validity_day is not a known field; /amount must be integer',
    errors: [
      { path: '/validity_day', message: 'is not a known field' },
      { path: '/amount', message: 'must be integer' },
    ],
  },
  BalanceTooLarge: {
    detail:
      'There is room for 9007199254739991 more credits, now and when the active cycle renews; 9007199254740991 were requested.',
    requested: 9007199254740991,
    available: 9007199254739991,
  },
  IdempotencyKeyReused: {
    detail: 'Nothing was changed. The key was sent before with other fields or to another path; use a new one.',
  },
  TooManyRequests: { detail: 'Nothing was changed. Try again in a moment.' },
  HeadersTooLarge: { detail: 'The connection is closed.' },
  Internal: { detail: FAULT_DETAILS.Internal },
  Overloaded: { detail: FAULT_DETAILS.Overloaded },
  StoreUnavailable: { detail: FAULT_DETAILS.StoreUnavailable },
  OutcomeUnknown: { detail: FAULT_DETAILS.OutcomeUnknown },
};

/** As `problemDocument` writes it, with the name of the error as the name of the example. */
export function problemExample(code: ProblemCode): Example {
  const { status, title } = PROBLEMS[code];
  const { detail, ...extras } = PARTICULARS[code];
  const value = { type: `/problems/${code}`, title, status, error: code, request_id: REQUEST_ID, detail, ...extras };
  return { summary: title, value };
}
