// The schemas that have an `$id`. Each of them is a component of the OpenAPI document.

import Type, { type TSchema } from 'typebox';
import { Balance, BalanceHistory, BalancePoint, CycleEntry } from './balances.ts';
import { Addition, Refund, Subtraction } from './credits.ts';
import { Cycle, NextCycle, Preview } from './cycles.ts';
import { EVENT_COMPONENTS, Event, WebhookTestEvent } from './event-types.ts';
import { EventList } from './events.ts';
import { amountOf } from './fields.ts';
import { Capture, Hold, HoldList, OpenHold, Release } from './holds.ts';
import { TestClock } from './test-clock.ts';
import { TouchedCycle, Transaction, TransactionList } from './transactions.ts';

const Problem = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description: 'The path, on this server, of a JSON document that describes the error and what to do about it.',
    }),
    title: Type.String({
      description: 'A short description of the error. All occurrences of an error have the same title.',
    }),
    status: Type.Integer({ description: 'The HTTP status.' }),
    error: Type.String({
      description: 'The name of the error. Check this field in your code. Later versions of Scrip can add error names.',
    }),
    error_code: Type.String({
      description:
        'The name of the error in capitals, such as `INSUFFICIENT_FUNDS`. Exceptions: `ACTIVE_CYCLE_EXISTS` for `CycleAlreadyActive`, `NO_ACTIVE_CYCLE` for `CycleNotFound`, and `AMOUNT_NEGATIVE` for an `amount` of 0 or less.',
    }),
    request_id: Type.String({
      description:
        'Identifies the request. If Scrip replays an error for an `Idempotency-Key`, `request_id` is the ID of the first request with that key.',
    }),
    timestamp: Type.String({
      format: 'date-time',
      description:
        'When the request arrived, in UTC. If Scrip replays an error for an `Idempotency-Key`, `timestamp` is the time of the first request with that key.',
    }),
    message: Type.String({ description: 'The same as `detail`.' }),
    detail: Type.String({ description: 'The reason why this request was refused or failed.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({
            description:
              'A JSON Pointer to the field. Empty if the whole body is invalid; `Idempotency-Key` if that header is invalid.',
          }),
          message: Type.String(),
        }),
        {
          description: 'Only for `InvalidField`: the fields that are missing, unknown or invalid, at most 20 entries.',
        },
      ),
    ),
    requested: Type.Optional(
      amountOf(
        'The requested credits. Present for `InsufficientFunds` and `BalanceTooLarge`; for `RefundTooLarge`, present only if the request had an `amount`. If a refund is refused with `BalanceTooLarge`, `requested` counts only the credits that the refund would have returned. If a hold is refused with `BalanceTooLarge`, `requested` counts only the credits whose cycle or period ends at or before the next renewal, because the hold would keep these credits past the renewal.',
      ),
    ),
    available: Type.Optional(
      amountOf(
        'Only for `InsufficientFunds` and `BalanceTooLarge`. For `InsufficientFunds`: the balance or, for a capture, the balance plus the credits of the hold. For `BalanceTooLarge`: the credits that still fit within the maximum balance.',
        0,
      ),
    ),
    shortfall: Type.Optional(amountOf('Only for `InsufficientFunds`: the credits that are missing.')),
    refundable: Type.Optional(
      amountOf('Only for `RefundTooLarge`: how many credits of the transaction can still be refunded.', 0),
    ),
    cycle: Type.Optional(Type.Ref('Cycle#', { description: 'Only for `CycleAlreadyActive`: the active cycle.' })),
  },
  { $id: 'Problem' },
);

export const COMPONENTS: readonly TSchema[] = [
  Addition,
  Subtraction,
  Refund,
  Cycle,
  Hold,
  OpenHold,
  HoldList,
  Capture,
  Release,
  CycleEntry,
  NextCycle,
  Preview,
  Balance,
  BalancePoint,
  BalanceHistory,
  TouchedCycle,
  Transaction,
  TransactionList,
  ...EVENT_COMPONENTS,
  Event,
  EventList,
  WebhookTestEvent,
  TestClock,
  Problem,
];
