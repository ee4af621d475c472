// The call that lists transactions.

import Type, { type Static } from 'typebox';
import { NOTE_LENGTH_MAX, POSTING_KINDS, type PostingKind } from '../../../ledger/posting.ts';
import {
  amountOf,
  CycleEnd,
  CycleStart,
  CycleType,
  EndUserId,
  instantField,
  strict,
  timestamp,
  transactionIdOf,
} from './fields.ts';
import { GET_NOTE, read } from './operation.ts';
import * as story from './story.ts';

/** Maximum number of transactions in a page. */
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
        description: `The maximum number of transactions in the response, which then has a \`next_cursor\`. If you send \`cursor\` without \`limit\`, the maximum is ${PAGE_LIMIT_DEFAULT}. If you send neither, all transactions are listed.`,
        examples: [story.PAGE.limit],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        // This field has no example: a cursor is valid only for the list that returned it.
        description:
          'The `next_cursor` of the previous page. The cursor includes `from` and `to`; if you send them again, they must be the same. You must send `kind` and `note` again for each page.',
      }),
    ),
    from: Type.Optional(
      instantField('Only transactions whose `created_at` is this instant or later.', story.PAGE.from),
    ),
    to: Type.Optional(
      instantField('Only transactions whose `created_at` is earlier than this instant.', story.PAGE.to),
    ),
    details: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether to show all recorded details of each transaction.' }),
    ),
    kind: Type.Optional(
      Type.Unsafe<PostingKind>({
        type: 'string',
        enum: POSTING_KINDS,
        description:
          'Only transactions of this kind. `schedule-plan`, `stop-cycle`, `hold`, `release` and `lapse` neither add nor spend credits, and are listed only if you request their kind.',
      }),
    ),
    note: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: NOTE_LENGTH_MAX,
        description: 'Only transactions whose note begins with this text. The comparison is case-sensitive.',
      }),
    ),
  },
  strict,
);

export type TransactionListQuery = Static<typeof TransactionListQuery>;

const Kind = Type.String({
  enum: POSTING_KINDS,
  description:
    'With `details`: the call that made the transaction; `schedule-plan` for a `/start-cycle` that takes effect at the end of the period. For automatic events: `renew`, `change-plan` (the start of a scheduled plan) or `lapse`.',
});

export const TouchedCycle = Type.Object(
  {
    cycle_id: transactionIdOf(
      'The transaction that started the cycle: an addition, a cycle start, the start of a scheduled plan, or a refund.',
    ),
    period: Type.Integer({
      minimum: 0,
      description: 'The number of the period, counted from 0; always 0 for a one-time cycle.',
    }),
    amount: Type.Integer({
      description: 'Credits that were added to the cycle (positive) or spent from it (negative).',
    }),
    held: Type.Optional(
      Type.Integer({ description: 'The change in the held credits of the cycle; absent if they did not change.' }),
    ),
    cycle_type: Type.Optional(CycleType),
    starting_amount: Type.Optional(
      amountOf(
        'The amount of the plan: the credits that the period started with, not including those that rolled over.',
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
      description: 'The transaction IDs of an end user sort in order of creation.',
    }),
    amount: Type.Integer({
      description:
        'Positive for additions, cycle starts, renewals and refunds; negative for subtractions and captures; otherwise 0.',
    }),
    created_at: CycleStart,
    expire_at: timestamp('2026-12-21T08:00:03.123Z', 'When the transaction stops affecting the balance.'),
    kind: Type.Optional(Kind),
    note: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description: 'With `details`: the note of the request; null if it had none.',
      }),
    ),
    actor: Type.Optional(
      Type.String({
        description:
          'With `details`: who made the transaction: `key:` and the number of an API key, `user:` and the ID of a console user, or `import:` and the number of an import. For automatic events: `renewal`, `change` or `lapse`.',
      }),
    ),
    reference: Type.Optional(
      transactionIdOf(
        'With `details`: for a capture, release or lapse, the hold that it closed; for a refund, the transaction that it refunded; for the start of a scheduled plan, the transaction that scheduled it.',
      ),
    ),
    refundable: Type.Optional(
      amountOf('With `details`, for a subtraction or capture: the credits that can still be refunded.', 0),
    ),
    held: Type.Optional(
      Type.Integer({ description: 'With `details`: the change in the held credits; absent if they did not change.' }),
    ),
    cycles: Type.Optional(
      Type.Array(Type.Ref('TouchedCycle#'), {
        description:
          'With `details`: the cycles that the transaction affected, in the order in which it affected them. `cycle_type`, `starting_amount`, `cycle_start` and `cycle_end` are left out after the tenth cycle of a transaction, and for some cycles if the transactions of a page affected hundreds of them.',
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
          'Only with `limit` or `cursor`: the `cursor` for the next page; null if there are no more transactions.',
      }),
    ),
  },
  { $id: 'TransactionList' },
);

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Lists the transactions that added or spent credits, most recent first: additions, cycle starts, renewals, subtractions, captures and refunds. The response contains all of these transactions or, with \`limit\` or \`cursor\`, a page of them. Pages are stable: transactions that are written between two requests do not shift the pages. ${GET_NOTE}`,
  querystring: TransactionListQuery,
  response: read('TransactionList', 'The transactions; none for an unknown end user.', { examples: story.LISTS }),
};
