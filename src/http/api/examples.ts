// The examples of the OpenAPI document, one of each answer and each problem: an end user with the credits of a trial and a
// subscription. Tests compare them with their schemas and with the answers of the service.

import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { type Particulars, problemDocument } from '../problem-reply.ts';
import { type PlainProblem, PROBLEMS, type ProblemCode } from '../problems.ts';
import { EXAMPLE_USER } from './schemas.ts';

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
const SUBTRACTION_REFUSED = { requested: 5000, available: 970 };
const ADDITION_REFUSED = { requested: AMOUNT_MAX, available: AMOUNT_MAX - 1000 };
const INVALID_FIELDS = [
  { path: '/validity_day', message: 'is not a known field' },
  { path: '/amount', message: 'must be integer' },
];

/** For problems whose detail varies, or that have further members. */
const PARTICULARS: Readonly<Record<Exclude<ProblemCode, PlainProblem> | 'CycleAlreadyActive', Particulars>> = {
  InvalidJson: { detail: PROBLEMS.InvalidJson.detail('it is empty') },
  InsufficientFunds: {
    detail: PROBLEMS.InsufficientFunds.detail(SUBTRACTION_REFUSED),
    ...SUBTRACTION_REFUSED,
    shortfall: 4030,
  },
  CycleAlreadyActive: { detail: PROBLEMS.CycleAlreadyActive.detail, cycle: CYCLE },
  InvalidField: { detail: PROBLEMS.InvalidField.detail(INVALID_FIELDS), errors: INVALID_FIELDS },
  BalanceTooLarge: { detail: PROBLEMS.BalanceTooLarge.detail(ADDITION_REFUSED), ...ADDITION_REFUSED },
  NotFound: { detail: PROBLEMS.NotFound.detail('/credits') },
  MethodNotAllowed: { detail: PROBLEMS.MethodNotAllowed.detail({ path: '/add', allow: 'POST', method: 'GET' }) },
  ExpectationFailed: { detail: PROBLEMS.ExpectationFailed.detail('a-miracle') },
};

export function problemExample(code: ProblemCode): { readonly summary: string; readonly value: unknown } {
  const plain = { detail: PROBLEMS[code as PlainProblem].detail };
  const particulars = code in PARTICULARS ? PARTICULARS[code as keyof typeof PARTICULARS] : plain;
  return { summary: PROBLEMS[code].title, value: JSON.parse(problemDocument(code, REQUEST_ID, particulars)) };
}
