// The call that lists transactions, with or without details.

import Type, { type Static } from 'typebox';
import { NOTE_LENGTH_MAX, type PostingKind } from '../../../ledger/posting.ts';
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

/** Maximum number of transactions in a page, and the default limit of a request with a cursor. */
export const PAGE_LIMIT_MAX = 1_000;
export const PAGE_LIMIT_DEFAULT = 100;

/** In the order of the calls. Time causes `renew` and `lapse`. */
export const KINDS: readonly PostingKind[] = [
  'add',
  'subtract',
  'refund',
  'start-cycle',
  'renew',
  'stop-cycle',
  'hold',
  'capture',
  'release',
  'lapse',
];

export const TransactionListQuery = Type.Object(
  {
    end_user_id: EndUserId,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PAGE_LIMIT_MAX,
        description: `The maximum number of transactions. The response then has \`next_cursor\`. With \`cursor\` alone, the maximum is ${PAGE_LIMIT_DEFAULT}. Without \`limit\` and \`cursor\`, all transactions are listed.`,
        examples: [story.PAGE.limit],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        // No example: a service accepts only the cursors that it has written itself.
        description:
          'The `next_cursor` of the previous page. It includes `from` and `to`; if you send them again, they must be the same. Send `kind` and `note` again with each page.',
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
        enum: KINDS,
        description:
          'Only transactions of this kind. `stop-cycle`, `hold`, `release` and `lapse` neither add nor spend credits, and are listed only if you request their kind.',
      }),
    ),
    note: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: NOTE_LENGTH_MAX,
        description: 'Only transactions whose note begins with this text. Upper and lower case differ.',
      }),
    ),
  },
  strict,
);

export type TransactionListQuery = Static<typeof TransactionListQuery>;

const Kind = Type.String({
  enum: KINDS,
  description: 'With `details`: the call that made the transaction, or `renew` or `lapse` if time caused it.',
});

export const TouchedCycle = Type.Object(
  {
    cycle_id: transactionIdOf('The transaction that started the cycle: an addition, a cycle start or a refund.'),
    period: Type.Integer({
      minimum: 0,
      description: 'The number of the period, counted from 0; always 0 for a one-time cycle.',
    }),
    amount: Type.Integer({
      description: 'Credits that were added to the cycle (positive) or spent from it (negative).',
    }),
    held: Type.Optional(
      Type.Integer({ description: 'Change of the held credits of the cycle; absent if there is none.' }),
    ),
    cycle_type: Type.Optional(CycleType),
    starting_amount: Type.Optional(amountOf('The credits that the cycle started with.')),
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
        'Positive for additions, cycle starts, renewals and refunds; negative for subtractions and captures.',
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
          'With `details`: who made the transaction. `key:` and the number of an API key, `user:` and the ID of a console user, `import:` and the number of an import, or `renewal` or `lapse` if time caused it.',
      }),
    ),
    reference: Type.Optional(
      transactionIdOf(
        'With `details`: the hold that a capture, a release or a lapse closed, or the transaction that was refunded.',
      ),
    ),
    refundable: Type.Optional(
      amountOf('With `details`, of a subtraction or capture: the credits that can still be refunded.', 0),
    ),
    held: Type.Optional(
      Type.Integer({ description: 'With `details`: change of the held credits; absent if there is none.' }),
    ),
    cycles: Type.Optional(
      Type.Array(Type.Ref('TouchedCycle#'), {
        description:
          'With `details`: the cycles that the transaction affected, in the order in which it affected them. `cycle_type`, `starting_amount`, `cycle_start` and `cycle_end` are left out after the tenth cycle, and if the transactions of a page affected hundreds of cycles.',
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
          'Only with `limit` or `cursor`: the `cursor` of the next page, or null when there are no more transactions.',
      }),
    ),
  },
  { $id: 'TransactionList' },
);

export const getAllUserTransactions = {
  operationId: 'getAllUserTransactions',
  tags: ['Credits'],
  summary: 'List transactions',
  description: `Lists the transactions that added or spent credits, most recent first: additions, cycle starts, renewals, subtractions, captures and refunds. Streams all of them or, with \`limit\` or \`cursor\`, returns a page. Pages are stable: transactions that are written meanwhile do not shift them. ${GET_NOTE}`,
  querystring: TransactionListQuery,
  response: read('TransactionList', 'The transactions; none for an unknown end user.', { examples: story.LISTS }),
};
