// The schemas of events: one component for each event type, the `Event` component for an event of any of these types,
// and the `WebhookTestEvent` component.

import Type, { type TSchema } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../../store/event-log.ts';
import { amountOf, EndUserId, HoldId, timestamp, transactionIdOf } from './fields.ts';

const EVENT_ID = 'evt_0f3b8c1d5e7a92640b1c2d3e4f5a6b7c';
const INSTANT = '2026-11-20T08:00:00.123Z';

const EventId = Type.String({
  description:
    'The ID of the event. Scrip can deliver an event more than once: ignore events that you have already processed.',
  examples: [EVENT_ID],
});

const Balance = amountOf('The balance after the event: the credits that the end user can spend.', 0);
const TransactionId = transactionIdOf('The ID of the transaction that caused the event.');
const CycleId = transactionIdOf('The ID of the cycle, which is the ID of the transaction that started the cycle.');
const ExpireAt = timestamp('2026-12-04T08:00:00.123Z', 'When the credits expire.');
const PeriodEnd = timestamp('2026-12-21T08:00:03.123Z', 'The end of the period.');

/** The members that the three `balance.*` types have in common. */
const crossing = {
  previous_balance: amountOf('The balance before the event.', 0),
  transaction_id: Type.Optional(
    transactionIdOf(
      'The ID of the transaction that caused the event. Absent if only an expiry of credits caused the event: an expiry is not a transaction. If a period starts at the same instant, this is the ID of the transaction that started it.',
    ),
  ),
};
const THRESHOLD =
  'A threshold is a number of credits, such as `20`, or a percentage of the latest grant, such as `20%`.';

interface Described {
  readonly happened: string;
  /** The members of `data` between `end_user_id` and `balance`. */
  readonly fields: Readonly<Record<string, TSchema>>;
}

const DESCRIBED: Readonly<Record<EventType, Described>> = {
  'credits.added': {
    happened: 'Credits were added.',
    fields: { transaction_id: TransactionId, amount: amountOf('The credits that were added.'), expire_at: ExpireAt },
  },
  'credits.subtracted': {
    happened: 'Credits were spent by a subtraction or a capture.',
    fields: {
      transaction_id: TransactionId,
      amount: amountOf('The credits that were spent.'),
      hold_id: Type.Optional(
        Type.String({ format: 'uuid', description: 'For a capture: the ID of the hold. Absent for a subtraction.' }),
      ),
    },
  },
  'credits.refunded': {
    happened: 'A subtraction or a capture was refunded.',
    fields: {
      transaction_id: transactionIdOf('The transaction ID of the refund.'),
      amount: amountOf('The refunded credits that can be spent again.', 0),
      expired: amountOf('The refunded credits that cannot be spent again, because their cycle or period has ended.', 0),
      refunded_transaction_id: transactionIdOf('The ID of the transaction that was refunded.'),
    },
  },
  'credits.expired': {
    happened:
      'Unused credits expired at the end of their cycle or period, or held credits returned to a cycle or period that had already ended.',
    fields: { cycle_id: CycleId, amount: amountOf('The credits that expired.') },
  },
  'credits.expiring': {
    happened: 'Credits will expire in 7 days. Each account can set a different number of days.',
    fields: {
      cycle_id: CycleId,
      amount: amountOf('The credits that will expire unless they are spent first.'),
      expire_at: ExpireAt,
    },
  },
  'cycle.started': {
    happened: 'A recurring cycle was started by a request or by a scheduled plan.',
    fields: {
      transaction_id: TransactionId,
      cycle_id: CycleId,
      amount: amountOf('The credits of the first period.'),
      cycle_end: PeriodEnd,
    },
  },
  'cycle.renewed': {
    happened: 'A cycle renewed: a new period began.',
    fields: {
      transaction_id: TransactionId,
      cycle_id: CycleId,
      amount: amountOf('The credits of the new period, including those that rolled over.'),
      rolled_over: amountOf('The credits that rolled over from the previous period.', 0),
      cycle_end: PeriodEnd,
    },
  },
  'cycle.stopped': {
    happened: 'A cycle was stopped. Its credits stay usable until the end of the period.',
    fields: { transaction_id: TransactionId, cycle_id: CycleId, cycle_end: PeriodEnd },
  },
  'hold.lapsed': {
    happened: 'A hold lapsed because it was neither captured nor released in time.',
    fields: { transaction_id: TransactionId, hold_id: HoldId, amount: amountOf('The credits that were held.') },
  },
  'balance.low': {
    happened: 'The balance fell below a threshold of the account.',
    fields: {
      ...crossing,
      threshold: Type.String({
        description: `The threshold that the balance fell below. ${THRESHOLD}`,
        examples: ['20%'],
      }),
    },
  },
  'balance.exhausted': { happened: 'The balance fell to 0.', fields: crossing },
  'balance.recovered': {
    happened:
      'The balance is no longer 0, or no longer below a threshold. The first grant to an end user does not cause this event.',
    fields: {
      ...crossing,
      thresholds: Type.Array(Type.String(), {
        description: `The thresholds that the balance was below before the event, but is no longer below. ${THRESHOLD}`,
      }),
    },
  },
};

export function meaningOf(type: EventType): string {
  return DESCRIBED[type].happened;
}

/** The name of the component for a type: `CreditsAddedEvent` for `credits.added`. */
function componentOf(type: EventType): string {
  return `${type.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`;
}

function eventOf(type: EventType): TSchema {
  const { happened, fields } = DESCRIBED[type];
  return Type.Object(
    {
      id: EventId,
      type: Type.String({ enum: [type] }),
      timestamp: timestamp(INSTANT, 'When the event happened.'),
      data: Type.Object({ end_user_id: EndUserId, ...fields, balance: Balance }),
    },
    { $id: componentOf(type), description: happened },
  );
}

export const EVENT_COMPONENTS: readonly TSchema[] = EVENT_TYPES.map(eventOf);

const mapping = Object.fromEntries(EVENT_TYPES.map((type) => [type, `#/components/schemas/${componentOf(type)}`]));

export const Event = Type.Unsafe({
  $id: 'Event',
  description:
    'Something that happened to an end user. Later versions of Scrip can add event types and members of `data`.',
  oneOf: EVENT_TYPES.map((type) => Type.Ref(`${componentOf(type)}#`)),
  discriminator: { propertyName: 'type', mapping },
});

/** Scrip sends this event only on request, to test a webhook. The list of events never contains it. */
export const WebhookTestEvent = Type.Object(
  {
    id: EventId,
    type: Type.String({ enum: ['webhook.test'] }),
    timestamp: timestamp(INSTANT, 'When the test was requested.'),
    data: Type.Object({ endpoint_id: Type.Integer({ description: 'The ID of the webhook endpoint.' }) }),
  },
  { $id: 'WebhookTestEvent', description: 'A test event, which Scrip sends to a webhook endpoint on request.' },
);
