// The six operations: their fields, their responses, and every problem that each can return. Fastify validates requests
// against them, and the OpenAPI document is generated from them.

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

const GET_NOTE = 'Send the fields in the query string, or in a JSON body of the same shape.';

/** Headers that the document lists for responses with this status. */
const HEADERS: Readonly<Record<number, Readonly<Record<string, unknown>>>> = {
  429: {
    'Retry-After': { type: 'integer', description: 'Seconds after which to try again.' },
    RateLimit: {
      type: 'string',
      description:
        'In every response to a request whose key has a rate limit: `r` requests are left; `t` is the number of seconds until all are available again or, if `r` is 0, until the next request is allowed.',
      examples: ['"key";r=0;t=1'],
    },
    'RateLimit-Policy': {
      type: 'string',
      description:
        'In every response to a request whose key has a rate limit: the key may make `q` requests in `w` seconds.',
      examples: ['"key";q=100;w=1'],
    },
  },
  401: { 'WWW-Authenticate': { type: 'string', description: 'The scheme, `Bearer`.' } },
  503: {
    'Retry-After': {
      type: 'integer',
      description:
        'Seconds after which to try again; absent with `OutcomeUnknown` if the request had no `Idempotency-Key`.',
    },
  },
};

/** The responses of an operation by status: success, and every problem that it can return. */
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

/** The common parts of the operations that write. */
function write(
  component: string,
  description: string,
  { example, idempotencyKey }: { readonly example: unknown; readonly idempotencyKey: string },
  ...refusals: readonly ProblemCode[]
) {
  const problems = ['OutcomeUnknown', 'IdempotencyKeyReused', ...refusals] as const;
  const response = responses(component, description, { example }, problems);
  return { querystring: schemas.NoQuery, headers: schemas.writeHeaders(idempotencyKey), response };
}

export const add = {
  operationId: 'add',
  tags: ['Credits'],
  summary: 'Add credits',
  description: 'Adds credits that expire after their validity and are not renewed.',
  body: schemas.AddRequest,
  ...write(
    'Addition',
    'The credits are added.',
    { example: examples.ADDITION, idempotencyKey: 'payment-4711' },
    'BalanceTooLarge',
  ),
};

export const subtract = {
  operationId: 'subtract',
  tags: ['Credits'],
  summary: 'Subtract credits',
  description:
    'Subtracts credits, the oldest first. All or nothing: if the balance does not cover the amount, nothing changes.',
  body: schemas.SubtractRequest,
  ...write(
    'Subtraction',
    'The credits are subtracted.',
    { example: examples.SUBTRACTION, idempotencyKey: 'job-4711' },
    'InsufficientFunds',
  ),
};

export const startCycle = {
  operationId: 'startCycle',
  tags: ['Cycles'],
  summary: 'Start a cycle',
  description: 'Starts a recurring cycle, which renews at the end of its validity until it is stopped.',
  body: schemas.StartCycleRequest,
  ...write(
    'Cycle',
    'The new cycle.',
    { example: examples.STARTED_CYCLE, idempotencyKey: 'subscription-4711' },
    'CycleAlreadyActive',
    'BalanceTooLarge',
  ),
};

export const stopCycle = {
  operationId: 'stopCycle',
  tags: ['Cycles'],
  summary: 'Stop the current cycle',
  description:
    'The credits stay usable until the end of the current period; the cycle is not renewed. Stopping it again returns the same response.',
  body: schemas.StopCycleRequest,
  ...write(
    'Cycle',
    'The current cycle, canceled.',
    { example: examples.STOPPED_CYCLE, idempotencyKey: 'cancellation-4711' },
    'CycleNotFound',
  ),
};

export const getActiveBalance = {
  operationId: 'getActiveBalance',
  tags: ['Credits'],
  summary: 'Get the active balance',
  description: `The credits that the end user can spend now, in total and by cycle. ${GET_NOTE}`,
  querystring: schemas.EndUserQuery,
  response: responses('Balance', 'The balance; zero for an unknown end user.', { example: examples.BALANCE }, []),
};

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Lists additions, cycle starts, renewals and subtractions, most recent first. Streams all of them or, with \`limit\` or \`cursor\`, returns a page. Pages are stable: transactions that are written meanwhile do not shift them. ${GET_NOTE}`,
  querystring: schemas.TransactionListQuery,
  response: responses(
    'TransactionList',
    'The transactions; none for an unknown end user.',
    { examples: examples.LISTS },
    [],
  ),
};
