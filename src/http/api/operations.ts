// The six operations: their fields, their answers, and every problem that each can answer with. Fastify validates and
// serializes by them, and the OpenAPI document is made of them.

import Type from 'typebox';
import { PROBLEM_TYPE } from '../problem-reply.ts';
import { PROBLEMS, type ProblemCode } from '../problems.ts';
import * as examples from './examples.ts';
import * as schemas from './schemas.ts';

const EVERY_CALL: readonly ProblemCode[] = [
  'BadRequest',
  'InvalidJson',
  'Unauthorized',
  'Forbidden',
  'RequestTimeout',
  'PayloadTooLarge',
  'UnsupportedMediaType',
  'InvalidField',
  'TooManyRequests',
  'HeadersTooLarge',
  'Internal',
  'Overloaded',
  'StoreUnavailable',
];

const GET_NOTE = 'The fields come in the query string, or in a JSON body of the same shape.';

/** Headers that only answers of this status have. */
const HEADERS: Readonly<Record<number, Readonly<Record<string, unknown>>>> = {
  429: {
    'Retry-After': { type: 'integer', description: 'Seconds after which to try again.' },
    RateLimit: {
      type: 'string',
      description:
        'On each answer to a key with a rate limit: the requests left (`r`), and the seconds until all are available again, or, if none is left, until the next one is (`t`).',
      examples: ['"key";r=0;t=1'],
    },
    'RateLimit-Policy': {
      type: 'string',
      description:
        'On each answer to a key with a rate limit: how many requests (`q`) it may make in how many seconds (`w`).',
      examples: ['"key";q=100;w=1'],
    },
  },
  401: { 'WWW-Authenticate': { type: 'string', description: 'The scheme, `Bearer`.' } },
  503: {
    'Retry-After': {
      type: 'integer',
      description:
        'Seconds after which to try again; absent with `OutcomeUnknown` where the request had no `Idempotency-Key`.',
    },
  },
};

/** The responses of an operation, by status: its success, and each problem that it can answer with. */
function responses(
  component: string,
  description: string,
  shown: { readonly example: unknown } | { readonly examples: unknown },
  problems: readonly ProblemCode[],
): Record<number, unknown> {
  const all: Record<number, unknown> = {
    200: { description, content: { 'application/json': { schema: Type.Ref(`${component}#`), ...shown } } },
  };
  const codes = [...EVERY_CALL, ...problems];
  for (const status of new Set(codes.map((code) => PROBLEMS[code].status))) {
    const here = codes.filter((code) => PROBLEMS[code].status === status);
    const explained = here.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join('\n\n');
    const examplesHere = Object.fromEntries(here.map((code) => [code, examples.problemExample(code)]));
    all[status] = {
      description: explained,
      ...(HEADERS[status] ? { headers: HEADERS[status] } : {}),
      content: { [PROBLEM_TYPE]: { schema: Type.Ref('Problem#'), examples: examplesHere } },
    };
  }
  return all;
}

/** What the operations that write have in common. */
function write(component: string, description: string, example: unknown, ...refusals: readonly ProblemCode[]) {
  const problems = ['OutcomeUnknown', 'IdempotencyKeyReused', ...refusals] as const;
  const response = responses(component, description, { example }, problems);
  return { querystring: schemas.NoQuery, headers: schemas.WriteHeaders, response };
}

export const add = {
  operationId: 'add',
  tags: ['Credits'],
  summary: 'Add credits',
  description: 'Adds credits that expire after their validity and are not renewed.',
  body: schemas.AddRequest,
  ...write('Addition', 'The credits are added.', examples.ADDITION, 'BalanceTooLarge'),
};

export const subtract = {
  operationId: 'subtract',
  tags: ['Credits'],
  summary: 'Subtract credits',
  description:
    'Subtracts credits, the oldest first. All or nothing: if the balance does not cover the amount, nothing changes.',
  body: schemas.SubtractRequest,
  ...write('Subtraction', 'The credits are subtracted.', examples.SUBTRACTION, 'InsufficientFunds'),
};

export const startCycle = {
  operationId: 'startCycle',
  tags: ['Cycles'],
  summary: 'Start a cycle',
  description: 'Starts a recurring cycle, which renews at the end of its validity until it is stopped.',
  body: schemas.StartCycleRequest,
  ...write('Cycle', 'The new cycle.', examples.STARTED_CYCLE, 'CycleAlreadyActive', 'BalanceTooLarge'),
};

export const stopCycle = {
  operationId: 'stopCycle',
  tags: ['Cycles'],
  summary: 'Stop the current cycle',
  description:
    'The credits stay usable until the end of the current period; the cycle is not renewed. Stopping twice answers the same.',
  body: schemas.StopCycleRequest,
  ...write('Cycle', 'The current cycle, canceled.', examples.STOPPED_CYCLE, 'CycleNotFound'),
};

export const getActiveBalance = {
  operationId: 'getActiveBalance',
  tags: ['Credits'],
  summary: 'Get the active balance',
  description: `What the end user can spend now, in total and by cycle. ${GET_NOTE}`,
  querystring: schemas.EndUserQuery,
  response: responses('Balance', 'The balance; zero for an unknown end user.', { example: examples.BALANCE }, []),
};

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Additions, cycle starts, renewals and subtractions, most recent first: all of them, streamed; or with \`limit\` or \`cursor\` a page of them. Pages are stable: transactions that are written meanwhile do not move them. ${GET_NOTE}`,
  querystring: schemas.TransactionListQuery,
  response: responses(
    'TransactionList',
    'The transactions; none for an unknown end user.',
    { examples: schemas.LIST_EXAMPLES },
    [],
  ),
};
