// The call that lists events. A page can have a thousand events, so it is read through the page queue and sent in
// pieces.

import type { FastifyInstance } from 'fastify';
import {
  EVENT_TYPES,
  type EventPage,
  type EventPageRequest,
  type EventType,
  eventBody,
} from '../../store/event-log.ts';
import { InvalidCursor } from '../../store/store-fault.ts';
import { admission } from '../admission/admit.ts';
import { connectionOf } from '../admission/connections.ts';
import { sendError } from '../problem-reply.ts';
import { invalidField } from '../problems.ts';
import type { CallOptions } from './call-options.ts';
import { EVENTS_LIMIT_DEFAULT, type EventListQuery, getEvents } from './calls/events.ts';
import { type EventListKey, invalidAfter, readEventCursor, writeEventCursor } from './event-cursor.ts';
import { fieldsReader } from './query-fields.ts';
import { sendPieces } from './replies.ts';

export function eventRoutes(app: FastifyInstance, options: CallOptions): void {
  const { events, pages, unsent } = options;
  const onRequest = admission(options, 'read');
  const preValidation = fieldsReader({ integers: ['limit'] });
  app.get<{ Querystring: EventListQuery }>(
    '/get-events',
    { onRequest, preValidation, schema: getEvents },
    (request, reply) => {
      const { account } = request.caller;
      const list = { account, epoch: events.epoch };
      const asked = pageRequestOf(request.query, list);
      pages
        .read(account, connectionOf(request.raw.socket), () => events.page(account, asked))
        .then((page) => sendPieces(unsent, reply, listPieces(page, list)))
        .catch((error) => sendError(reply, error instanceof InvalidCursor ? invalidAfter() : error));
    },
  );
}

/** @throws InvalidRequest */
function pageRequestOf({ after, types, limit }: EventListQuery, list: EventListKey): EventPageRequest {
  return {
    after: after === undefined ? null : readEventCursor(after, list),
    types: types === undefined ? undefined : typesOf(types),
    limit: limit ?? EVENTS_LIMIT_DEFAULT,
  };
}

function typesOf(text: string): readonly EventType[] {
  const names = [...new Set(text.split(','))];
  const unknown = names.find((name) => !(EVENT_TYPES as readonly string[]).includes(name));
  if (unknown === undefined) return names as EventType[];
  const message = `must be event types, separated by commas; ${JSON.stringify(unknown)} is not one of ${EVENT_TYPES.join(', ')}`;
  throw invalidField('/types', message);
}

/** The number of events in one piece of a response. A piece is about 30 kB long. */
const EVENTS_A_PIECE = 100;

function listPieces({ events, position, hasMore }: EventPage, list: EventListKey): readonly string[] {
  const pieces = ['{"events":['];
  for (let from = 0; from < events.length; from += EVENTS_A_PIECE) {
    const bodies = events.slice(from, from + EVENTS_A_PIECE).map(eventBody);
    pieces.push(from === 0 ? bodies.join(',') : `,${bodies.join(',')}`);
  }
  pieces.push(`],"next_cursor":"${writeEventCursor(position, list)}","has_more":${hasMore}}`);
  return pieces;
}
