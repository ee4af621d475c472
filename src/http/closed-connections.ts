// Behind an answer that closes its connection nothing is done any more (RFC 9112, section 9.6): a request that was
// pipelined there would be done, and nobody would learn of it.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { sendProblem } from './problem.ts';

const PLACE = Symbol('place among the requests of the connection');
const PLACES = Symbol('places given');
const LAST = Symbol('place of the request whose answer closes the connection');

type PlacedRequest = IncomingMessage & { [PLACE]?: number };
type PlacingSocket = Socket & { [PLACES]?: number; [LAST]?: number };

export function stopAtClose(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    placeOf(request.raw);
    done();
  });
  // When its body is there, and so those before it were judged.
  app.addHook('preHandler', (request, reply, done) => {
    const last = (request.raw.socket as PlacingSocket)[LAST];
    if (last === undefined || placeOf(request.raw) <= last) return done();
    // Nobody reads it.
    sendProblem(reply, 'BadRequest', { detail: 'It came behind a request whose answer closed the connection.' });
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.getHeader('connection') === 'close') {
      const socket = request.raw.socket as PlacingSocket;
      socket[LAST] = Math.min(socket[LAST] ?? Number.POSITIVE_INFINITY, placeOf(request.raw));
    }
    done();
  });
}

/** Given when it is first asked for, which is when the request comes in, or is turned away before. */
function placeOf(request: PlacedRequest): number {
  if (request[PLACE] !== undefined) return request[PLACE];
  const socket = request.socket as PlacingSocket;
  socket[PLACES] = (socket[PLACES] ?? 0) + 1;
  request[PLACE] = socket[PLACES];
  return request[PLACE];
}
