// The examples of the OpenAPI document, one for each response and each problem. They belong together: if the example
// requests are sent to a new ledger in the order of the document, one second apart, they get the example responses. A
// test does this.

import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { type Particulars, problemDocument } from '../problem-reply.ts';
import { type PlainProblem, PROBLEMS, type ProblemCode } from '../problems.ts';
import { EXAMPLE_USER } from './schemas.ts';

/** The first part is the time of the request, some seconds after the others. */
const REQUEST_ID = 'mwoovbib-co1-7';

const CYCLE = {
  end_user_id: EXAMPLE_USER,
  amount: 1000,
  created_at: '2026-11-20T08:00:02.123',
  current_cycle_start: '2026-11-20T08:00:02.123Z',
  current_cycle_end: '2026-12-21T08:00:02.123Z',
  cycle_type: 'recurring',
  status: 'active',
} as const;

export const ADDITION = { end_user_id: EXAMPLE_USER, amount: 100 };
export const SUBTRACTION = { end_user_id: EXAMPLE_USER, amount: 30 };
export const STARTED_CYCLE = CYCLE;
export const STOPPED_CYCLE = { ...CYCLE, status: 'canceled' };
export const BALANCE = {
  end_user_id: EXAMPLE_USER,
  active_balance_by_cycle: [
    {
      cycle_start: '2026-11-20T08:00:00.123Z',
      cycle_end: '2026-12-04T08:00:00.123Z',
      amount: 70,
      starting_amount: 100,
      status: 'active',
      cycle_type: 'one-time',
    },
    {
      cycle_start: '2026-11-20T08:00:02.123Z',
      cycle_end: '2026-12-21T08:00:02.123Z',
      amount: 1000,
      starting_amount: 1000,
      status: 'canceled',
      cycle_type: 'recurring',
    },
  ],
  active_balance: 1070,
};
const TRANSACTIONS = [
  {
    transaction_id: '01a1f7f8-384b-4000-8001-8128f99dccfd',
    amount: 1000,
    created_at: '2026-11-20T08:00:02.123Z',
    expire_at: '2026-12-21T08:00:02.123Z',
  },
  {
    transaction_id: '01a1f7f8-3463-4000-8001-645ebec444fe',
    amount: -30,
    created_at: '2026-11-20T08:00:01.123Z',
    expire_at: '2026-12-04T08:00:00.123Z',
  },
  {
    transaction_id: '01a1f7f8-307b-4000-8001-95be776512d5',
    amount: 100,
    created_at: '2026-11-20T08:00:00.123Z',
    expire_at: '2026-12-04T08:00:00.123Z',
  },
];
/** The page for the example request, and the whole list. */
export const LISTS = {
  page: {
    summary: 'With `limit`: a page, and the cursor of the next one',
    value: {
      end_user_id: EXAMPLE_USER,
      transactions: TRANSACTIONS.slice(0, 2),
      next_cursor: 'AQGh9_g0Y0AAgAFkXr7ERP4BoZRn6AABoi7msADby7qMN3iJnA',
    },
  },
  all: {
    summary: 'Without `limit` and `cursor`: all transactions',
    value: { end_user_id: EXAMPLE_USER, transactions: TRANSACTIONS },
  },
};
const SUBTRACTION_REFUSED = { requested: 5000, available: 1070 };
const ADDITION_REFUSED = { requested: AMOUNT_MAX, available: AMOUNT_MAX - 1070 };
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
    shortfall: 3930,
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
