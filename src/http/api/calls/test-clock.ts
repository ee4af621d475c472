// The calls that read and move the test clock of a ledger.

import Type, { type Static } from 'typebox';
import { INT64, instantField, NoQuery, strict, timestamp } from './fields.ts';
import { OF_WRITES, testClockAnswers } from './operation.ts';
import * as story from './story.ts';

export const MoveTestClockRequest = Type.Object(
  {
    advance_days: Type.Optional(
      Type.Integer({ ...INT64, minimum: 1, description: 'Moves the clock forward by this many 24-hour days.' }),
    ),
    to: Type.Optional(
      instantField(
        'Moves the clock to this instant. The instant must be at or after the current time of the clock, and before 9999-12-31T23:59:59.999Z.',
      ),
    ),
  },
  { ...strict, description: 'Send either `advance_days` or `to`, but not both.', 'x-examples': story.TEST_CLOCK_MOVES },
);

export type MoveTestClockRequest = Static<typeof MoveTestClockRequest>;

export const TestClock = Type.Object(
  {
    now: timestamp(
      story.TEST_CLOCK.now,
      'The current time of the ledger. The time changes only when you move the test clock.',
    ),
  },
  { $id: 'TestClock' },
);

const ONLY =
  'This call works only on a ledger that was created with `scrip serve --test-clock`. On a ledger without a test clock, the call returns `NotFound`.';

export const getTestClock = {
  operationId: 'getTestClock',
  tags: ['Test clock'],
  summary: 'Get the time of the test clock',
  description: `Returns the current time of the ledger. ${ONLY}`,
  querystring: NoQuery,
  response: testClockAnswers('The current time of the ledger.', { example: story.TEST_CLOCK }),
};

export const moveTestClock = {
  operationId: 'moveTestClock',
  tags: ['Test clock'],
  summary: 'Move the test clock',
  description: `Moves the time of the ledger forward, by a number of days or to an instant. By the time you receive the response, everything that was due by the new time has happened: holds have lapsed, cycles have renewed, and credits have expired. From then on, every read and write uses the new time, even after a restart. ${ONLY}`,
  querystring: NoQuery,
  body: MoveTestClockRequest,
  documentedBody: { minProperties: 1, maxProperties: 1 },
  response: testClockAnswers('The new time of the ledger.', { examples: story.TEST_CLOCK_MOVED }, ...OF_WRITES),
};
