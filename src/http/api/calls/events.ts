// The call that lists events.

import Type, { type Static } from 'typebox';
import { EVENT_TYPES, EVENTS_PER_PAGE_MAX } from '../../../store/event-log.ts';
import { EVENT_LIST, EVENT_PAGE } from './event-story.ts';
import { strict } from './fields.ts';
import { GET_NOTE, read } from './operation.ts';

export const EVENTS_LIMIT_DEFAULT = 100;

export const EventListQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2_048,
        // This field has no example: a cursor is valid only for the account that received it.
        description:
          'The `next_cursor` of the previous response. If absent, the list begins with the oldest event that Scrip still stores.',
      }),
    ),
    types: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_000,
        description: `The event types to list, separated by commas. If absent, events of all types are listed. The types are ${EVENT_TYPES.map((type) => `\`${type}\``).join(', ')}.`,
        examples: [EVENT_PAGE.types],
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: EVENTS_PER_PAGE_MAX,
        default: EVENTS_LIMIT_DEFAULT,
        description: 'The maximum number of events in the response.',
        examples: [EVENT_PAGE.limit],
      }),
    ),
  },
  strict,
);

export type EventListQuery = Static<typeof EventListQuery>;

export const EventList = Type.Object(
  {
    events: Type.Array(Type.Ref('Event#'), {
      description:
        'The events, in the order in which Scrip recorded them. The events of one end user are in the order in which they happened.',
    }),
    next_cursor: Type.String({
      description:
        'To get the events that follow, send this cursor as `after`. Every response has a cursor, even if no events follow yet.',
    }),
    has_more: Type.Boolean({
      description: 'Whether more events might be available now. If false, wait before you send the next request.',
    }),
  },
  { $id: 'EventList' },
);

export const getEvents = {
  operationId: 'getEvents',
  tags: ['Events'],
  summary: 'List events',
  description: `Lists the events of all end users, oldest first. Events appear shortly after they happen, and are kept for 30 days unless the operator has set a different time. To process each event exactly once, store \`next_cursor\` together with the results of your processing, and send it as \`after\` in the next request. ${GET_NOTE}`,
  querystring: EventListQuery,
  response: read('EventList', 'The events. If you send `types`, the list can be empty even if `has_more` is true.', {
    example: EVENT_LIST,
  }),
};
