// The examples of problems, with amounts from `story.ts`.

import { AMOUNT_MAX } from '../../../ledger/amount.ts';
import type { WriteCommand } from '../../../ledger/command.ts';
import { type Particulars, problemDocument } from '../../problem-reply.ts';
import { NO_TEST_CLOCK, type PlainProblem, PROBLEMS, type ProblemCode, refusalDetail } from '../../problems.ts';
import { ACTIVE_BALANCE, CYCLE } from './story.ts';

const REQUEST_ID = 'mwoovbib-co1-7';

const SPENDING_REFUSED = { requested: 5000, available: ACTIVE_BALANCE };
const ADDITION_REFUSED = { requested: AMOUNT_MAX, available: AMOUNT_MAX - ACTIVE_BALANCE };
const REFUND_REFUSED = { requested: 30, refundable: 20 };
const INVALID_FIELDS = [
  { path: '/validity_day', message: 'is not a known field' },
  { path: '/amount', message: 'must be a whole number' },
];

/**
 * Maps the schema of an operation's success response to the kind of the operation's command, because the text of
 * `InsufficientFunds` depends on this kind. The default is `subtract`.
 */
const SPENDING: Readonly<Record<string, WriteCommand['kind']>> = { Hold: 'hold', Capture: 'capture' };

/**
 * The problems whose `detail` or members depend on the request. Each problem has a function that returns the `detail`
 * and the members for an example. `component` is the name of the schema of the operation's success response.
 */
const PARTICULARS: Readonly<
  Record<Exclude<ProblemCode, PlainProblem> | 'CycleAlreadyActive', (component: string) => Particulars>
> = {
  InvalidJson: () => ({ detail: PROBLEMS.InvalidJson.detail('it is empty') }),
  InsufficientFunds: (component) => ({
    detail: refusalDetail({ refused: 'InsufficientFunds', ...SPENDING_REFUSED }, SPENDING[component]),
    ...SPENDING_REFUSED,
    shortfall: SPENDING_REFUSED.requested - SPENDING_REFUSED.available,
  }),
  CycleAlreadyActive: () => ({ detail: PROBLEMS.CycleAlreadyActive.detail, cycle: CYCLE }),
  RefundTooLarge: () => ({ detail: PROBLEMS.RefundTooLarge.detail(REFUND_REFUSED), ...REFUND_REFUSED }),
  InvalidField: () => ({ detail: PROBLEMS.InvalidField.detail(INVALID_FIELDS), errors: INVALID_FIELDS }),
  BalanceTooLarge: () => ({ detail: PROBLEMS.BalanceTooLarge.detail(ADDITION_REFUSED), ...ADDITION_REFUSED }),
  NotFound: () => ({ detail: NO_TEST_CLOCK }),
  MethodNotAllowed: () => ({
    detail: PROBLEMS.MethodNotAllowed.detail({ path: '/add', allow: 'POST', method: 'GET' }),
  }),
  ExpectationFailed: () => ({ detail: PROBLEMS.ExpectationFailed.detail('a-miracle') }),
};

/** @param component the name of the schema of the operation's success response, such as `Hold` */
export function problemExample(code: ProblemCode, component: string): { summary: string; value: unknown } {
  const particulars =
    code in PARTICULARS
      ? PARTICULARS[code as keyof typeof PARTICULARS](component)
      : { detail: PROBLEMS[code as PlainProblem].detail };
  return { summary: PROBLEMS[code].title, value: JSON.parse(problemDocument(code, REQUEST_ID, particulars)) };
}
