// The routes of the test clock. On a ledger without a test clock, they return `NotFound`.

import type { FastifyInstance, FastifyReply, preValidationHookHandler } from 'fastify';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import type { TestClockMove } from '../../store/test-clock.ts';
import { admission } from '../admission/admit.ts';
import { sendError, sendProblem } from '../problem-reply.ts';
import { invalidField, NO_TEST_CLOCK } from '../problems.ts';
import type { CallOptions } from './call-options.ts';
import * as calls from './calls/test-clock.ts';
import { mergeBodyIntoQuery, readInstants } from './query-fields.ts';
import { sendJson, timestamp } from './replies.ts';

export function testClockRoutes(app: FastifyInstance, options: CallOptions): void {
  const { testClock = null } = options;

  app.get(
    '/test-clock',
    { onRequest: admission(options, 'read'), preValidation: mergeBodyIntoQuery, schema: calls.getTestClock },
    (_request, reply) => {
      if (testClock === null) return sendNoTestClock(reply);
      testClock
        .now()
        .then((now) => sendNow(reply, now))
        .catch((error) => sendError(reply, error));
    },
  );

  app.post<{ Body: calls.MoveTestClockRequest }>(
    '/test-clock',
    { onRequest: admission(options, 'write'), preValidation: readInstant, schema: calls.moveTestClock },
    (request, reply) => {
      if (testClock === null) return sendNoTestClock(reply);
      // A key has no effect here, so it must not make a retry after `OutcomeUnknown` seem safe.
      delete request.headers['idempotency-key'];
      const move = moveOf(request.body);
      testClock
        .move(move)
        .then((now) => {
          if (now === null) throw refusalOf(move);
          sendNow(reply, now);
        })
        .catch((error) => sendError(reply, error));
    },
  );
}

/**
 * Rounds the requested instant up to the next millisecond. If Scrip rounded down, the clock would stop just before the
 * requested instant.
 */
const readInstant: preValidationHookHandler = (request, _reply, done) => {
  const { body } = request;
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    request.body = readInstants(body as Readonly<Record<string, unknown>>, ['to'], { rounding: 'up' });
  done();
};

/** @throws InvalidRequest unless the request has exactly one of the fields `advance_days` and `to` */
function moveOf({ advance_days: days, to }: calls.MoveTestClockRequest): TestClockMove {
  if (days !== undefined && to === undefined) return { days };
  if (to !== undefined && days === undefined) return { to: Date.parse(to) };
  throw invalidField('', 'must have either `advance_days` or `to`, but not both');
}

function refusalOf(move: TestClockMove) {
  const end = timestamp(INSTANT_MAX);
  return 'to' in move
    ? invalidField('/to', `must be at or after the current time of the clock, and before ${end}`)
    : invalidField('/advance_days', `must not move the clock to ${end} or later`);
}

function sendNow(reply: FastifyReply, now: Instant): void {
  sendJson(reply, `{"now":"${timestamp(now)}"}`);
}

function sendNoTestClock(reply: FastifyReply): void {
  sendProblem(reply, 'NotFound', { detail: NO_TEST_CLOCK });
}
