// The call that lists transactions.

import Type, { type Static } from 'typebox';
import { NOTE_LENGTH_MAX, POSTING_KINDS, type PostingKind } from '../../../ledger/posting.ts';
import {
  amountOf,
  CycleEnd,
  CycleStart,
  CycleType,
  EndUserId,
  INT64,
  instantField,
  strict,
  timestamp,
  transactionIdOf,
} from './fields.ts';
import { GET_NOTE, read } from './operation.ts';
import * as story from './story.ts';

export const PAGE_LIMIT_MAX = 1_000;
/** The limit of a request that has a cursor but no `limit`. */
export const PAGE_LIMIT_DEFAULT = 100;

export const TransactionListQuery = Type.Object(
  {
    end_user_id: EndUserId,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        description: `The maximum number of transactions in the response. If you send \`cursor\` without \`limit\`, the maximum is ${PAGE_LIMIT_DEFAULT}. If you send neither \`limit\` nor \`cursor\`, you get the whole list.`,
        examples: [story.PAGE.limit],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        // This field has no example: a cursor is valid only for the list that returned it.
        description:
          'The `next_cursor` of the previous page. The cursor includes `from` and `to`: omit these fields, or send the same values again. The cursor does not include the filters: if you filter by `kind` or `note`, send the same filters for each page.',
      }),
    ),
    from: Type.Optional(
      instantField('Lists only transactions that were created at or after this instant.', story.PAGE.from),
    ),
    to: Type.Optional(instantField('Lists only transactions that were created before this instant.', story.PAGE.to)),
    details: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Whether to include the details of each transaction, such as `kind` and `note`.',
      }),
    ),
    kind: Type.Optional(
      Type.Unsafe<PostingKind>({
        type: 'string',
        enum: POSTING_KINDS,
        description:
          'Lists only transactions of this kind. If `kind` is absent, the list contains only transactions that added or spent credits. To list transactions of the kind `schedule-plan`, `stop-cycle`, `hold`, `release` or `lapse`, filter by that kind.',
      }),
    ),
    note: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: NOTE_LENGTH_MAX,
        description: 'Lists only transactions whose note begins with this text. The comparison is case-sensitive.',
      }),
    ),
  },
  strict,
);

export type TransactionListQuery = Static<typeof TransactionListQuery>;

const Kind = Type.String({
  enum: POSTING_KINDS,
  description:
    'Only with `details`. For a transaction that a request caused: the name of the call, or `schedule-plan` if a `/start-cycle` request scheduled a plan. A `/start-cycle` request that replaces a cycle creates two transactions: `stop-cycle` and `start-cycle`. For an automatic event: `renew`, `change-plan` (a scheduled plan started) or `lapse` (a hold lapsed).',
});

export const TouchedCycle = Type.Object(
  {
    cycle_id: transactionIdOf(
      'The ID of the cycle, which is the ID of the transaction that started the cycle. Transactions of the kinds `add`, `start-cycle`, `change-plan` and `refund` can start a cycle.',
    ),
    period: Type.Integer({
      minimum: 0,
      description: 'The number of the period, counted from 0; always 0 for a one-time cycle.',
    }),
    amount: Type.Integer({
      ...INT64,
      description:
        'Positive: the credits that the transaction added to the cycle. Negative: the credits that the transaction spent from the cycle.',
    }),
    held: Type.Optional(
      Type.Integer({
        ...INT64,
        description: 'The change in the number of credits held in the cycle. Absent if the number did not change.',
      }),
    ),
    cycle_type: Type.Optional(CycleType),
    starting_amount: Type.Optional(
      amountOf(
        'The credits added at the start of the cycle or period. Credits that rolled over from the previous period are not included.',
      ),
    ),
    cycle_start: Type.Optional(CycleStart),
    cycle_end: Type.Optional(CycleEnd),
  },
  { $id: 'TouchedCycle' },
);
export const Transaction = Type.Object(
  {
    transaction_id: Type.String({
      format: 'uuid',
      description:
        'The ID of the transaction. If you sort the transactions of an end user by ID, they are in order of creation.',
    }),
    amount: Type.Integer({
      ...INT64,
      description:
        'The change in credits: positive for additions, cycle starts, renewals and refunds; negative for subtractions and captures; 0 for all other transactions, and for refunds whose credits have all expired.',
    }),
    created_at: CycleStart,
    expire_at: timestamp(
      '2026-12-21T08:00:03.123Z',
      'For a transaction that added or spent credits: the end of the cycle or period whose credits changed. If the credits of several cycles or periods changed: the end of the cycle or period that ends last. For a refund whose credits have all expired: the end of the refunded cycle or period that ended last. For all other transactions: the end of the first affected cycle or period. After `expire_at`, the transaction affects the balance only through credits that rolled over and through held credits of other cycles.',
    ),
    kind: Type.Optional(Kind),
    note: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description: 'Only with `details`. The note of the request; null if the transaction has no note.',
      }),
    ),
    actor: Type.Optional(
      Type.String({
        description:
          'Only with `details`. What caused the transaction: `key:`, `user:` or `import:`, followed by the ID of the API key, console user or import. For automatic events: `renewal`, `change` or `lapse`.',
      }),
    ),
    reference: Type.Optional(
      transactionIdOf(
        'Only with `details`. For a capture, release or lapse: the ID of the hold that was closed. For a refund: the ID of the transaction that was refunded. For the start of a scheduled plan: the ID of the transaction that scheduled the plan. Otherwise absent.',
      ),
    ),
    refundable: Type.Optional(
      amountOf('Only with `details`. For a subtraction or a capture: the credits that can still be refunded.', 0),
    ),
    held: Type.Optional(
      Type.Integer({
        ...INT64,
        description:
          'Only with `details`. The change in the number of held credits. Absent if the number did not change.',
      }),
    ),
    cycles: Type.Optional(
      Type.Array(Type.Ref('TouchedCycle#'), {
        description:
          'Only with `details`. The cycles that the transaction affected, in the order in which it affected them. Only the first ten cycles of each transaction have `cycle_type`, `starting_amount`, `cycle_start` and `cycle_end`. If the transactions on the page affected hundreds of cycles in total, fewer cycles have these fields.',
      }),
    ),
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
          'Present only if you send `limit` or `cursor`. To get the next page, send this value as `cursor`. Null if there are no more transactions.',
      }),
    ),
  },
  { $id: 'TransactionList' },
);

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Lists the transactions that added or spent credits: additions, cycle starts, renewals, subtractions, captures and refunds. The most recent transaction comes first. You get the whole list or, with \`limit\` or \`cursor\`, one page of the list. Pages are stable: transactions that are written between two requests do not shift the pages. ${GET_NOTE}`,
  querystring: TransactionListQuery,
  response: read('TransactionList', 'The transactions; an empty list if the end user is unknown.', {
    examples: story.LISTS,
  }),
};
