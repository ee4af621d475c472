// Routes that let members move the test clock. On a ledger without a test clock, these routes return 404.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { NO_TEST_CLOCK } from '../../http/problems.ts';
import { DAY_MS, type Instant, isInstant } from '../../ledger/instant.ts';
import type { ConsoleContext } from '../console-context.ts';
import type { Viewer } from '../layout.ts';
import { TEST_CLOCK_PATH, type TestClockView, testClockPage } from '../pages/test-clock.ts';
import type { On } from '../permissions.ts';
import { formField, formFields, noticeOf, redirectTo, sendError, sendPage } from '../request-reply.ts';
import { type FieldReading, readDays, readInstant } from './form-input.ts';

const NOTICES = { moved: 'Test clock moved.' } as const;

/** After moving the clock, Scrip redirects the browser only to a page of the console or to the API reference. */
const BACK = /^\/(?:console|docs)(?:[/?][!-~]*)?$/;

const NOT_FORWARD = 'The test clock can only move forward, and not beyond the year 9999.';

const STALE = 'Nothing was changed, because the clock has moved since this page was loaded. Submit the form again.';

export function testClockRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/test-clock', (request, reply, viewer) => sendTestClock(request, reply, viewer, null));

  on('POST /console/test-clock', async (request, reply, viewer) => {
    const { testClock } = context;
    if (testClock === null || request.testTime === undefined) return sendNoTestClock(reply, viewer);
    const values = { days: formField(request, 'days'), to: formField(request, 'to') };
    // Only the form that moves the clock to a date has this field, which the user might have left empty.
    const form = formFields(request, 'to').length === 0 ? 'days' : 'to';
    const from = fromOf(request, request.testTime);
    const wanted = form === 'to' ? readInstant(values.to) : readAdvance(values.days, from);
    // If the form is sent twice, the clock already shows the wanted time.
    const isStale = form === 'days' && from !== request.testTime && wanted.value !== request.testTime;
    const moved = wanted.value === null || isStale ? null : await testClock.move({ to: wanted.value });
    if (moved === null) {
      const errors = { [form]: wanted.error ?? (isStale ? STALE : NOT_FORWARD) };
      return sendTestClock(request, reply, viewer, { form, state: { values, errors } });
    }
    const back = formField(request, 'back');
    const isBack = BACK.test(back) && !back.startsWith(TEST_CLOCK_PATH);
    return redirectTo(reply, isBack ? back : `${TEST_CLOCK_PATH}?notice=moved`);
  });
}

/** Returns the time that the test clock showed when the form was loaded. The entered days are added to this time. */
function fromOf(request: FastifyRequest, now: Instant): Instant {
  const from = Number(formField(request, 'from') || now);
  return isInstant(from) ? from : now;
}

function readAdvance(text: string, from: Instant): FieldReading<Instant> {
  const days = readDays(text);
  return days.error === null ? { value: from + days.value * DAY_MS, error: null } : days;
}

function sendTestClock(
  request: FastifyRequest,
  reply: FastifyReply,
  viewer: Viewer,
  refused: TestClockView['refused'],
): FastifyReply {
  const { testTime: now } = request;
  if (now === undefined) return sendNoTestClock(reply, viewer);
  const notice = refused === null ? noticeOf(request, NOTICES) : null;
  return sendPage(reply, testClockPage({ now, refused }, { viewer, notice }));
}

function sendNoTestClock(reply: FastifyReply, viewer: Viewer): FastifyReply {
  return sendError(reply, 404, { title: 'No test clock', detail: NO_TEST_CLOCK }, viewer);
}
