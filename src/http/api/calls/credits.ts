// The calls that add, subtract and refund credits.

import Type, { type Static } from 'typebox';
import {
  Amount,
  amountOf,
  EndUserId,
  INT64,
  Note,
  ONE_VALIDITY,
  strict,
  transactionIdOf,
  ValidityDays,
  ValidityMonths,
} from './fields.ts';
import { write } from './operation.ts';
import * as story from './story.ts';

export const AddRequest = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    validity_days: Type.Optional(ValidityDays),
    validity_months: ValidityMonths,
    note: Note,
  },
  { ...strict, examples: [story.ADD] },
);
export const SubtractRequest = Type.Object(
  { end_user_id: EndUserId, amount: Amount, note: Note },
  { ...strict, examples: [story.SUBTRACT] },
);
export const RefundRequest = Type.Object(
  {
    end_user_id: EndUserId,
    transaction_id: transactionIdOf(
      'The ID of the subtraction or capture to refund. Take the ID from the `Transaction-Id` header of the response to `/subtract` or `/capture`, or from `transaction_id` in the list of transactions.',
    ),
    amount: Type.Optional(
      amountOf('The number of credits to refund; if absent, all credits that have not been refunded yet.'),
    ),
    validity_days: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        ...INT64,
        minimum: 1,
        description:
          'Applies to refunded credits whose cycle or period has ended. These credits return in a new one-time cycle that is valid for this number of 24-hour days. If this field is null or absent, these credits do not return, and the response counts them as `expired`.',
      }),
    ),
    note: Note,
  },
  { ...strict, examples: [story.REFUND] },
);

export type AddRequest = Static<typeof AddRequest>;
export type SubtractRequest = Static<typeof SubtractRequest>;
export type RefundRequest = Static<typeof RefundRequest>;

export const Addition = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Addition' });
export const Subtraction = Type.Object({ end_user_id: EndUserId, amount: Amount }, { $id: 'Subtraction' });
export const Refund = Type.Object(
  {
    end_user_id: EndUserId,
    transaction_id: transactionIdOf('The transaction ID of the refund.'),
    amount: amountOf('The refunded credits that can be spent again.', 0),
    expired: amountOf('The refunded credits that cannot be spent again, because their cycle or period has ended.', 0),
  },
  { $id: 'Refund' },
);

export const add = {
  operationId: 'add',
  tags: ['Credits'],
  summary: 'Add credits',
  description: 'Adds credits that expire at the end of their validity and do not renew.',
  body: AddRequest,
  documentedBody: ONE_VALIDITY,
  ...write('Addition', 'The credits are added.', story.ADDED, 'BalanceTooLarge'),
};

export const subtract = {
  operationId: 'subtract',
  tags: ['Credits'],
  summary: 'Subtract credits',
  description:
    'Subtracts credits, the oldest first. If the balance does not cover the amount, the request is refused and nothing changes.',
  body: SubtractRequest,
  ...write('Subtraction', 'The credits are subtracted.', story.SUBTRACTED, 'InsufficientFunds'),
};

export const refund = {
  operationId: 'refund',
  tags: ['Credits'],
  summary: 'Refund spent credits',
  description:
    'Returns credits of a subtraction or a capture to the cycles that they came from. A partial refund first returns the credits that were spent last. In total, the refunds of a transaction cannot exceed the credits that the transaction spent.',
  body: RefundRequest,
  ...write(
    'Refund',
    'The credits are refunded.',
    story.REFUNDED,
    'TransactionNotFound',
    'NotRefundable',
    'RefundTooLarge',
    'BalanceTooLarge',
  ),
};
