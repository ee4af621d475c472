// Parts that several operations of the OpenAPI document have in common.

import Type from 'typebox';
import { IDEMPOTENCY_KEY_MAX } from '../../limits.ts';
import { PROBLEM_TYPE } from '../../problem-reply.ts';
import { PROBLEMS, type ProblemCode } from '../../problems.ts';
import { NoQuery } from './fields.ts';
import { problemExample } from './problem-examples.ts';
import type { Written, WrittenOften } from './story.ts';

const EVERY_CALL: readonly ProblemCode[] = [
  'BadRequest',
  'InvalidJson',
  'Unauthorized',
  'RequestTimeout',
  'PayloadTooLarge',
  'UnsupportedMediaType',
  'ExpectationFailed',
  'InvalidField',
  'TooManyRequests',
  'HeadersTooLarge',
  'Internal',
  'Overloaded',
  'StoreUnavailable',
];

export const OF_WRITES: readonly ProblemCode[] = ['Forbidden', 'OutcomeUnknown'];

/**
 * Parts of an operation that are only in the OpenAPI document. Code checks these rules, because the errors of a schema
 * would not name the field or the header.
 */
export interface Documented {
  /** Keywords to add to the schema of the body. */
  readonly documentedBody?: object;
  readonly documentedHeaders?: object;
}

export const GET_NOTE = 'Send the fields in the query string, or as a JSON object in the body.';

/** The headers of every response to an API call with a valid API key, if API keys have a rate limit. */
export const RATE_HEADERS = {
  RateLimit: {
    description:
      'Present if API keys have a rate limit and the API key is valid. `r` is the number of requests that you can send with the key now. If `r` is 0, `t` is the number of seconds until you can send the next request. If `r` is greater than 0, `t` is the number of seconds until you can again send `q` requests at once, where `q` is a parameter of `RateLimit-Policy`.',
    schema: { type: 'string', examples: ['"key";r=0;t=1'] },
  },
  'RateLimit-Policy': {
    description:
      'Present if API keys have a rate limit and the API key is valid. With each key, you can send `q` requests in `w` seconds on average.',
    schema: { type: 'string', examples: ['"key";q=100;w=1'] },
  },
} as const;

const HEADERS: Readonly<Record<number, Readonly<Record<string, unknown>>>> = {
  429: { 'Retry-After': { type: 'integer', description: 'The number of seconds to wait before trying again.' } },
  401: {
    'WWW-Authenticate': {
      type: 'string',
      description: 'The authentication scheme and its realm: `Bearer realm="scrip"`.',
    },
  },
  503: {
    'Retry-After': {
      type: 'integer',
      description:
        'The number of seconds to wait before trying again. Absent if the error is `OutcomeUnknown` and the request had no `Idempotency-Key`, or was `POST /test-clock`.',
    },
  },
};

const REPLAYED = {
  'Idempotent-Replayed': {
    type: 'string',
    description:
      '`true` if Scrip replayed the response to an earlier request with the same `Idempotency-Key`. Otherwise absent.',
  },
};

/** One example, or several named examples. */
type Shown = { readonly example: unknown } | { readonly examples: Readonly<Record<string, unknown>> };

function responses(
  success: {
    readonly component: string;
    readonly description: string;
    readonly shown: Shown;
    readonly headers?: object;
  },
  problems: readonly ProblemCode[],
  replayable: readonly ProblemCode[] = [],
): Record<number, unknown> {
  const { component, description, shown, headers } = success;
  const content = { 'application/json': { schema: Type.Ref(`${component}#`), ...shown } };
  const all: Record<number, unknown> = { 200: { description, ...(headers ? { headers } : {}), content } };
  const codes = [...EVERY_CALL, ...problems, ...replayable];
  for (const status of new Set(codes.map((code) => PROBLEMS[code].status))) {
    const here = codes.filter((code) => PROBLEMS[code].status === status);
    const isReplayable = here.some((code) => replayable.includes(code));
    const explained = here.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join('\n\n');
    const examples = Object.fromEntries(here.map((code) => [code, problemExample(code, component)]));
    all[status] = {
      description: explained,
      ...(HEADERS[status] || isReplayable ? { headers: { ...HEADERS[status], ...(isReplayable && REPLAYED) } } : {}),
      content: { [PROBLEM_TYPE]: { schema: Type.Ref('Problem#'), examples } },
    };
  }
  return all;
}

export function read(component: string, description: string, shown: Shown): Record<number, unknown> {
  return responses({ component, description, shown }, []);
}

/**
 * The responses of the operations on the test clock. They include `NotFound`, because most ledgers have no test clock.
 */
export function testClockAnswers(
  description: string,
  shown: Shown,
  ...problems: readonly ProblemCode[]
): Record<number, unknown> {
  return responses({ component: 'TestClock', description, shown }, ['NotFound', ...problems]);
}

/** The common parts of an operation that has a request body but writes nothing. */
export function preview(component: string, description: string, example: unknown, ...refusals: readonly ProblemCode[]) {
  return { querystring: NoQuery, response: responses({ component, description, shown: { example } }, refusals) };
}

/** @param written one example, or several named examples */
export function write(
  component: string,
  description: string,
  written: Written | WrittenOften,
  ...refusals: readonly ProblemCode[]
) {
  const problems = [...OF_WRITES, 'IdempotencyKeyReused'] as const;
  const headers = writtenHeaders(isOne(written) ? [written] : Object.values(written));
  const success = { component, description, shown: shownOf(written, ({ response }) => response), headers };
  const response = responses(success, problems, refusals);
  return { querystring: NoQuery, documentedHeaders: requestHeaders(written), response };
}

function isOne(written: Written | WrittenOften): written is Written {
  return 'response' in written;
}

function shownOf(written: Written | WrittenOften, select: (one: Written) => unknown): Shown {
  if (isOne(written)) return { example: select(written) };
  const named = Object.entries(written).map(([name, one]) => [name, { summary: one.summary, value: select(one) }]);
  return { examples: Object.fromEntries(named) };
}

function writtenHeaders(written: readonly Written[]) {
  return {
    'Transaction-Id': {
      type: 'string',
      format: 'uuid',
      description:
        'The ID of the transaction that was recorded. A replayed response has the same transaction ID as the first response. Absent if no transaction was recorded, for example because the cycle was already stopped.',
      examples: written.map(({ transactionId }) => transactionId),
    },
    ...REPLAYED,
  };
}

function requestHeaders(written: Written | WrittenOften) {
  const shown = shownOf(written, ({ idempotencyKey }) => idempotencyKey);
  const examples = 'example' in shown ? { examples: [shown.example] } : { 'x-examples': shown.examples };
  return Type.Object({
    'Idempotency-Key': Type.Optional(
      Type.String({
        description:
          'Makes it safe to send the request again. The key has 1 to 255 printable ASCII characters. Choose a new key for each operation on an end user. For at least 24 hours, a repeated request gets the response to the first request, with `Idempotent-Replayed: true`.',
        minLength: 1,
        maxLength: IDEMPOTENCY_KEY_MAX,
        pattern: '^[ -~]+$',
        ...examples,
      }),
    ),
  });
}
