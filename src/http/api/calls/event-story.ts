// The examples of events. The example list contains the first events of the story in `story.ts`. For webhooks, there is
// one example of each event type. Some of the webhook examples are events of the story; the others use only the
// story's end user and IDs.

import { hash } from 'node:crypto';
import { DAY_MS, type Instant } from '../../../ledger/instant.ts';
import type { EventType } from '../../../store/event-log.ts';
import { EXAMPLE_USER } from './fields.ts';
import * as story from './story.ts';

const { at, textOf, idAt } = story;

function example(type: EventType | 'webhook.test', instant: Instant, data: Readonly<Record<string, unknown>>) {
  return { id: `evt_${hash('sha256', type).slice(0, 32)}`, type, timestamp: textOf(instant), data };
}

function eventOf(type: EventType, instant: Instant, fields: Readonly<Record<string, unknown>>, balance: number) {
  return example(type, instant, { end_user_id: EXAMPLE_USER, ...fields, balance });
}

const ADDED = eventOf(
  'credits.added',
  at(0),
  { transaction_id: story.ADDITION_ID, amount: 100, expire_at: story.ADDITION_END },
  100,
);
const SUBTRACTED = eventOf('credits.subtracted', at(1), { transaction_id: story.SUBTRACTION_ID, amount: 30 }, 70);

/** The parameters of the example request for events. */
export const EVENT_PAGE = { types: 'credits.added,credits.subtracted', limit: 2 };
export const EVENT_LIST = { events: [ADDED, SUBTRACTED], next_cursor: 'AX3iXq6J1ZbSMQ', has_more: true };

const ENDS = Date.parse(story.CYCLE_END);
const EXPIRES = Date.parse(story.ADDITION_END);
const low = idAt(14, '70c5f2d8b31e');
const last = idAt(15, 'b94e1a7d0c62');
const renewal = idAt((ENDS - at(0)) / 1_000, '5d18e3f7a04b');
const started = { cycle_id: story.CYCLE_ID, amount: 1000 };

const EVENTS = [
  ADDED,
  SUBTRACTED,
  eventOf(
    'credits.refunded',
    at(2),
    { transaction_id: story.REFUND_ID, amount: 10, expired: 0, refunded_transaction_id: story.SUBTRACTION_ID },
    80,
  ),
  eventOf(
    'credits.expiring',
    EXPIRES - 7 * DAY_MS,
    { cycle_id: story.ADDITION_ID, amount: 48, expire_at: story.ADDITION_END },
    1048,
  ),
  eventOf('credits.expired', EXPIRES, { cycle_id: story.ADDITION_ID, amount: 48 }, 1000),
  eventOf('cycle.started', at(3), { transaction_id: story.CYCLE_ID, ...started, cycle_end: story.CYCLE_END }, 1080),
  eventOf(
    'cycle.renewed',
    ENDS,
    { transaction_id: renewal, ...started, rolled_over: 0, cycle_end: textOf(ENDS + 31 * DAY_MS) },
    1000,
  ),
  eventOf(
    'cycle.stopped',
    at(4),
    { transaction_id: story.STOP_ID, cycle_id: story.CYCLE_ID, cycle_end: story.CYCLE_END },
    1080,
  ),
  eventOf(
    'hold.lapsed',
    at(906),
    { transaction_id: idAt(906, 'e2507b9c4f13'), hold_id: story.RELEASED_HOLD_ID, amount: 20 },
    1048,
  ),
  eventOf('balance.low', at(14), { previous_balance: 1048, transaction_id: low, threshold: '20%' }, 148),
  eventOf('balance.exhausted', at(15), { previous_balance: 148, transaction_id: last }, 0),
  eventOf(
    'balance.recovered',
    at(16),
    { previous_balance: 0, transaction_id: idAt(16, '3a6f0d92c8b5'), thresholds: ['20%'] },
    500,
  ),
  example('webhook.test', at(20), { endpoint_id: 1 }),
];

/** An example of a webhook body for each event type. The event types are the keys. */
export const EVENT_EXAMPLES = Object.fromEntries(EVENTS.map((value) => [value.type, value]));
