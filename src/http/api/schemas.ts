// The schemas of requests and responses. Requests are validated by them, and the OpenAPI document is made of them.

import Type, { type Static, type TSchema } from 'typebox';
import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_DEFAULT } from '../../ledger/instant.ts';

/** The end user of all examples. */
export const EXAMPLE_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
/** Transactions of one page at most, and of a page for which only a cursor is given. */
export const PAGE_LIMIT_MAX = 1_000;
export const PAGE_LIMIT_DEFAULT = 100;

export const EXAMPLE_CURSOR = 'AQGh-HTBYUAAgAGu9izktPb_______________9VJeS9H8o2vA';
const EndUserId = Type.String({
  format: 'uuid',
  description: 'The end user: a UUID that you choose.',
  examples: [EXAMPLE_USER],
});
const Amount = Type.Integer({
  minimum: 1,
  maximum: AMOUNT_MAX,
  description: 'Credits, a whole number.',
  examples: [100],
});
const Credits = Type.Integer({ minimum: 0, maximum: AMOUNT_MAX });
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-11-20T08:00:00.123Z'] });
const ValidityDays = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  default: VALIDITY_DAYS_DEFAULT,
  description:
    'How many days of 24 hours the credits are valid; null or absent means 31. No upper limit: an end after the year 9999 becomes 9999-12-31T23:59:59.999Z.',
  examples: [31],
});

/** An instant in a request, in any time zone. */
function instantOf(description: string) {
  return Type.String({
    format: 'date-time',
    description: `${description} ISO 8601 with a zone; in a query string, \`+\` is written \`%2B\`.`,
    examples: ['2026-11-01T00:00:00Z'],
  });
}

const strict = { additionalProperties: false } as const;

export const AddRequest = Type.Object(
  { end_user_id: EndUserId, amount: Amount, validity_days: Type.Optional(ValidityDays) },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER, amount: 100, validity_days: 14 }] },
);
export const SubtractRequest = Type.Object(
  { end_user_id: EndUserId, amount: Amount },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER, amount: 130 }] },
);
export const StartCycleRequest = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    validity_days: Type.Optional(ValidityDays),
    on_active: Type.Optional(
      Type.Literal('replace', {
        type: 'string',
        description:
          'If a cycle is active, stop it and start the new one in one step. Without this, the request is refused with CycleAlreadyActive.',
      }),
    ),
  },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER, amount: 1000, validity_days: 31 }] },
);
export const StopCycleRequest = Type.Object(
  { end_user_id: EndUserId },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER }] },
);
export const EndUserQuery = Type.Object({ end_user_id: EndUserId }, strict);
/** Validated in `write-routes.ts`, so that the problem names the header. */
export const WriteHeaders = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      description:
        'Makes the request safe to send again: 1 to 255 printable ASCII characters of your choice, a new key for each operation on this end user. A repeated request gets the response of the first one, with `Idempotent-Replayed: true`, for at least 24 hours.',
      examples: ['order-4711'],
    }),
  ),
});
export const TransactionListQuery = Type.Object(
  {
    end_user_id: EndUserId,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        description: `The maximum number of transactions; the response then has \`next_cursor\`. With \`cursor\` alone it is ${PAGE_LIMIT_DEFAULT}; with neither, all are listed.`,
        examples: [PAGE_LIMIT_DEFAULT],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description:
          'Continues behind a page: its `next_cursor`. It includes `from` and `to`; if you send them again, they must be the same.',
        examples: [EXAMPLE_CURSOR],
      }),
    ),
    from: Type.Optional(instantOf('Only transactions whose `created_at` is this instant or later.')),
    to: Type.Optional(instantOf('Only transactions whose `created_at` is earlier than this instant.')),
  },
  strict,
);
export const NoQuery = Type.Object({}, strict);

export type AddRequest = Static<typeof AddRequest>;
export type SubtractRequest = Static<typeof SubtractRequest>;
export type StartCycleRequest = Static<typeof StartCycleRequest>;
export type StopCycleRequest = Static<typeof StopCycleRequest>;
export type TransactionListQuery = Static<typeof TransactionListQuery>;
export type EndUserQuery = Static<typeof EndUserQuery>;
export type CycleObject = Static<typeof Cycle>;

const CycleType = Type.String({ enum: ['recurring', 'one-time'] });
const Status = Type.String({
  enum: ['active', 'canceled'],
  description: '`canceled` for a stopped cycle, which is not renewed.',
});

/** Each has an `$id`, under which it is a component of the OpenAPI document. */
export const Addition = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Addition' });
export const Subtraction = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Subtraction' });
export const Cycle = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    created_at: Type.String({
      description: 'When the cycle was started; in UTC, without the suffix `Z`.',
      examples: ['2026-11-20T08:00:00.123'],
    }),
    current_cycle_start: Timestamp,
    current_cycle_end: Timestamp,
    cycle_type: CycleType,
    status: Status,
  },
  { $id: 'Cycle' },
);
export const CycleEntry = Type.Object(
  {
    cycle_start: Timestamp,
    cycle_end: Timestamp,
    amount: Type.Integer({ ...Credits, description: 'The credits that remain.' }),
    starting_amount: Type.Integer({ ...Amount, description: 'The credits that it started with.' }),
    status: Status,
    cycle_type: CycleType,
  },
  { $id: 'CycleEntry' },
);
export const Balance = Type.Object(
  {
    end_user_id: EndUserId,
    active_balance_by_cycle: Type.Array(Type.Ref('CycleEntry#'), {
      description: 'Every cycle that has not ended, oldest first.',
    }),
    active_balance: Type.Integer({ ...Credits, description: 'The sum of all cycles.' }),
  },
  { $id: 'Balance' },
);
export const Transaction = Type.Object(
  {
    transaction_id: Type.String({ format: 'uuid', description: 'The ids of an end user sort in order of creation.' }),
    amount: Type.Integer({
      description: 'Positive for credits that start a cycle or are added, negative for a subtraction.',
    }),
    created_at: Timestamp,
    expire_at: Type.String({ ...Timestamp, description: 'The instant after which it no longer affects the balance.' }),
  },
  { $id: 'Transaction' },
);
export const TransactionList = Type.Object(
  {
    end_user_id: EndUserId,
    transactions: Type.Array(Type.Ref('Transaction#'), { description: 'Most recent first.' }),
    next_cursor: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description:
          'Only with `limit` or `cursor`: the `cursor` of the next page, or null when there are no more transactions.',
        examples: [EXAMPLE_CURSOR],
      }),
    ),
  },
  { $id: 'TransactionList' },
);
const EXAMPLE_TRANSACTION = {
  transaction_id: '01a1f874-c161-4000-8001-aef62ce4b4f6',
  amount: -130,
  created_at: '2026-11-20T10:16:03.681Z',
  expire_at: '2026-12-21T10:16:03.268Z',
};
/** A list and a page of it. */
export const LIST_EXAMPLES = {
  all: {
    summary: 'Without `limit` and `cursor`: all',
    value: { end_user_id: EXAMPLE_USER, transactions: [EXAMPLE_TRANSACTION] },
  },
  page: {
    summary: 'With one of them: a page, and where the next one begins',
    value: { end_user_id: EXAMPLE_USER, transactions: [EXAMPLE_TRANSACTION], next_cursor: EXAMPLE_CURSOR },
  },
};
export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri-reference', description: 'A path of the service that explains the error.' }),
    title: Type.String({ description: 'The error in a few words, the same each time.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    error: Type.String({ description: 'The name to program against. New ones may be added.' }),
    request_id: Type.String({ description: 'Identifies the request in the server log.' }),
    detail: Type.String({ description: 'What happened this time.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({ path: Type.String({ description: 'JSON Pointer to the field.' }), message: Type.String() }),
        { description: '`InvalidField`: each field that is missing, unknown or invalid.' },
      ),
    ),
    requested: Type.Optional(
      Type.Integer({
        ...Amount,
        description: '`InsufficientFunds`, `BalanceTooLarge`: the credits that were requested.',
      }),
    ),
    available: Type.Optional(
      Type.Integer({
        ...Credits,
        description:
          '`InsufficientFunds`: the balance. `BalanceTooLarge`: how many more credits the end user can hold.',
      }),
    ),
    shortfall: Type.Optional(
      Type.Integer({ ...Amount, description: '`InsufficientFunds`: the credits that are missing.' }),
    ),
    cycle: Type.Optional(Type.Ref('Cycle#', { description: '`CycleAlreadyActive`: the active cycle.' })),
  },
  { $id: 'Problem' },
);

export const COMPONENTS: readonly TSchema[] = [
  Addition,
  Subtraction,
  Cycle,
  CycleEntry,
  Balance,
  Transaction,
  TransactionList,
  Problem,
];
