// What each operation is, for Fastify to validate and serialize by and for the OpenAPI document to show: its fields, its
// answer, and every problem that it can answer with.

import * as examples from './examples.ts';
import { Type } from './json-schema.ts';
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode } from './problem.ts';
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

const WRITE_PROBLEMS: readonly ProblemCode[] = ['OutcomeUnknown', 'IdempotencyKeyReused'];

const GET_NOTE = 'The fields come in the query string, or in a JSON body of the same shape.';

/** What an answer of this status says in its headers, beyond what all answers do. */
const HEADERS: Readonly<Record<number, Readonly<Record<string, unknown>>>> = {
  429: {
    'Retry-After': { type: 'integer', description: 'Seconds after which to try again.' },
    RateLimit: {
      type: 'string',
      description:
        'On each answer of a key that is limited: how many requests are left (`r`), and the seconds until all are there again, or where none is left, until the next one is (`t`).',
      examples: ['"key";r=0;t=1'],
    },
    'RateLimit-Policy': {
      type: 'string',
      description:
        'On each answer of a key that is limited: how many requests (`q`) it may make in how many seconds (`w`).',
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

/** The responses of an operation by status: what it answers when all is well, and each problem that it can answer. */
function responses(
  ok: schemas.Component,
  description: string,
  example: unknown,
  problems: readonly ProblemCode[],
): Record<number, unknown> {
  const all: Record<number, unknown> = {
    200: { description, content: { 'application/json': { schema: Type.Ref(`${ok.$id}#`), example } } },
  };
  const codes = [...EVERY_CALL, ...problems];
  for (const status of new Set(codes.map((code) => PROBLEMS[code].status))) {
    const here = codes.filter((code) => PROBLEMS[code].status === status);
    const explained = here.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join('\n\n');
    const shown = Object.fromEntries(here.map((code) => [code, examples.problemExample(code)]));
    all[status] = {
      description: explained,
      ...(HEADERS[status] ? { headers: HEADERS[status] } : {}),
      content: { [PROBLEM_TYPE]: { schema: Type.Ref('Problem#'), examples: shown } },
    };
  }
  return all;
}

/** Shows what is answered when all is well in each of its forms. */
function withExamples(all: Record<number, unknown>, examples: object): Record<number, unknown> {
  const { content, ...ok } = all[200] as { content: { 'application/json': object } };
  return { ...all, 200: { ...ok, content: { 'application/json': { ...content['application/json'], examples } } } };
}

export const add = {
  operationId: 'add',
  tags: ['Credits'],
  summary: 'Add credits',
  description: 'Adds credits that expire after their validity and are not renewed.',
  querystring: schemas.NoQuery,
  headers: schemas.WriteHeaders,
  body: schemas.AddRequest,
  response: responses(schemas.Addition, 'The credits are added.', examples.ADDITION, [
    ...WRITE_PROBLEMS,
    'BalanceTooLarge',
  ]),
};

export const subtract = {
  operationId: 'subtract',
  tags: ['Credits'],
  summary: 'Subtract credits',
  description: 'Subtracts credits, the oldest first. All or nothing: what the balance cannot cover changes nothing.',
  querystring: schemas.NoQuery,
  headers: schemas.WriteHeaders,
  body: schemas.SubtractRequest,
  response: responses(schemas.Subtraction, 'The credits are subtracted.', examples.SUBTRACTION, [
    ...WRITE_PROBLEMS,
    'InsufficientFunds',
  ]),
};

export const startCycle = {
  operationId: 'startCycle',
  tags: ['Cycles'],
  summary: 'Start a cycle',
  description: 'Starts a recurring cycle, which renews at the end of its validity until it is stopped.',
  querystring: schemas.NoQuery,
  headers: schemas.WriteHeaders,
  body: schemas.StartCycleRequest,
  response: responses(schemas.Cycle, 'The new cycle.', examples.STARTED_CYCLE, [
    ...WRITE_PROBLEMS,
    'CycleAlreadyActive',
    'BalanceTooLarge',
  ]),
};

export const stopCycle = {
  operationId: 'stopCycle',
  tags: ['Cycles'],
  summary: 'Stop the current cycle',
  description:
    'The credits stay usable until the end of the current period; the cycle is not renewed. Stopping twice answers the same.',
  querystring: schemas.NoQuery,
  headers: schemas.WriteHeaders,
  body: schemas.StopCycleRequest,
  response: responses(schemas.Cycle, 'The current cycle, canceled.', examples.STOPPED_CYCLE, [
    ...WRITE_PROBLEMS,
    'CycleNotFound',
  ]),
};

export const getActiveBalance = {
  operationId: 'getActiveBalance',
  tags: ['Credits'],
  summary: 'Get the active balance',
  description: `What the end user can spend now, in all and by cycle. ${GET_NOTE}`,
  querystring: schemas.EndUserQuery,
  response: responses(schemas.Balance, 'The balance; zero for an end user never heard of.', examples.BALANCE, []),
};

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Additions, cycle starts, renewals and subtractions, most recent first: all of them, streamed; or with \`limit\` or \`cursor\` a page of them. Pages are stable: what is written while you go through them moves nothing. ${GET_NOTE}`,
  querystring: schemas.TransactionListQuery,
  response: withExamples(
    responses(schemas.TransactionList, 'The transactions; none for an end user never heard of.', undefined, []),
    schemas.LIST_EXAMPLES,
  ),
};
