// The schemas of requests and responses. Requests are validated against them, and the OpenAPI document is generated
// from them.

import Type, { type Static, type TSchema } from 'typebox';
import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_DEFAULT } from '../../ledger/instant.ts';

/** The end user of all examples; see `examples.ts`. */
export const EXAMPLE_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
/** Maximum number of transactions in a page, and the number if a request has a cursor but no limit. */
export const PAGE_LIMIT_MAX = 1_000;
export const PAGE_LIMIT_DEFAULT = 100;

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
function timestamp(example: string, description?: string) {
  return Type.String({ format: 'date-time', ...(description ? { description } : {}), examples: [example] });
}
const CycleStart = timestamp('2026-11-20T08:00:02.123Z');
const CycleEnd = timestamp('2026-12-21T08:00:02.123Z');
const ValidityDays = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  default: VALIDITY_DAYS_DEFAULT,
  description:
    'How many days of 24 hours the credits are valid; null or absent means 31. No upper limit: an end after the year 9999 becomes 9999-12-31T23:59:59.999Z.',
  examples: [31],
});

/** An instant in a request, in any time zone. */
function instantOf(description: string, example: string) {
  return Type.String({
    format: 'date-time',
    description: `${description} ISO 8601 with a zone; in a query string, \`+\` is written \`%2B\`.`,
    examples: [example],
  });
}

const strict = { additionalProperties: false } as const;

export const AddRequest = Type.Object(
  { end_user_id: EndUserId, amount: Amount, validity_days: Type.Optional(ValidityDays) },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER, amount: 100, validity_days: 14 }] },
);
export const SubtractRequest = Type.Object(
  { end_user_id: EndUserId, amount: Amount },
  { ...strict, examples: [{ end_user_id: EXAMPLE_USER, amount: 30 }] },
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
/**
 * Validated in `write-routes.ts`, so that the problem names the header.
 *
 * @param example different for each operation, since a key belongs to one request
 */
export function writeHeaders(example: string) {
  return Type.Object({
    'Idempotency-Key': Type.Optional(
      Type.String({
        description:
          'Makes the request safe to send again: 1 to 255 printable ASCII characters of your choice, a new key for each operation on this end user. A repeated request gets the response of the first one, with `Idempotent-Replayed: true`, for at least 24 hours.',
        examples: [example],
      }),
    ),
  });
}
export const TransactionListQuery = Type.Object(
  {
    end_user_id: EndUserId,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        description: `The maximum number of transactions; the response then has \`next_cursor\`. With \`cursor\` alone it is ${PAGE_LIMIT_DEFAULT}; with neither, all are listed.`,
        examples: [2],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        // No example: a service accepts only the cursors that it has written itself.
        description:
          'The `next_cursor` of the previous page. It includes `from` and `to`; if you send them again, they must be the same.',
      }),
    ),
    from: Type.Optional(
      instantOf('Only transactions whose `created_at` is this instant or later.', '2026-11-01T00:00:00Z'),
    ),
    to: Type.Optional(
      instantOf('Only transactions whose `created_at` is earlier than this instant.', '2026-12-01T00:00:00Z'),
    ),
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

/** Schemas with an `$id` are components of the OpenAPI document. */
export const Addition = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Addition' });
export const Subtraction = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Subtraction' });
export const Cycle = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    created_at: Type.String({
      description:
        'When the cycle was started, in UTC, but without the suffix `Z` that all other timestamps have. Append `Z` before you parse it: most languages read a timestamp without a zone as local time.',
      examples: ['2026-11-20T08:00:02.123'],
    }),
    current_cycle_start: CycleStart,
    current_cycle_end: CycleEnd,
    cycle_type: CycleType,
    status: Status,
  },
  { $id: 'Cycle' },
);
export const CycleEntry = Type.Object(
  {
    cycle_start: CycleStart,
    cycle_end: CycleEnd,
    amount: Type.Integer({ ...Credits, description: 'The credits that remain.' }),
    starting_amount: Type.Integer({ ...Amount, description: 'The credits that the cycle started with.' }),
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
      description: 'Positive for additions, cycle starts and renewals; negative for subtractions.',
    }),
    created_at: CycleStart,
    expire_at: timestamp('2026-12-21T08:00:02.123Z', 'When it stops affecting the balance.'),
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
      }),
    ),
  },
  { $id: 'TransactionList' },
);
export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri-reference', description: 'A path of the service that describes the error.' }),
    title: Type.String({ description: 'The error in a few words, the same each time.' }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    error: Type.String({ description: 'The name of the error, for use in programs. New names may be added.' }),
    error_code: Type.String({
      description:
        'The same name in capitals, such as `INSUFFICIENT_FUNDS`; except `ACTIVE_CYCLE_EXISTS` for `CycleAlreadyActive`, `NO_ACTIVE_CYCLE` for `CycleNotFound`, and `AMOUNT_NEGATIVE` for an `amount` of 0 or less.',
    }),
    request_id: Type.String({ description: 'Identifies the request in the server log.' }),
    timestamp: Type.String({ format: 'date-time', description: 'When the request arrived, in UTC.' }),
    message: Type.String({ description: 'The same as `detail`.' }),
    detail: Type.String({ description: 'What happened in this case.' }),
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
