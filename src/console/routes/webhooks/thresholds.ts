// Routes that let members set when the `balance.low` and `credits.expiring` events happen.

import type { FastifyReply } from 'fastify';
import { EXPIRING_DAYS_MAX, THRESHOLDS_MAX, type Threshold, thresholdOf } from '../../../store/event-log.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { type ThresholdsView, thresholdsPage } from '../../pages/webhooks/thresholds.ts';
import { THRESHOLDS_PATH } from '../../pages/webhooks/webhook-paths.ts';
import type { On, ViewerRequest } from '../../permissions.ts';
import { formField, noticeOf, redirectTo, sendPage } from '../../request-reply.ts';
import { type FieldReading, readAmount, readDays } from '../form-input.ts';

const NOTICES = {
  added: 'Threshold added.',
  exists: 'The account already has this threshold.',
  removed: 'Threshold removed.',
  expiring: 'Saved.',
} as const;

export function thresholdRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/thresholds', (request, reply, viewer) =>
    sendThresholds(context, { request, reply, viewer, refused: null }),
  );

  on('POST /console/thresholds', async (request, reply, viewer) => {
    const values = { below: formField(request, 'below') };
    const refuse = (error: string) => {
      const state = { values, errors: { below: error } };
      return sendThresholds(context, { request, reply, viewer, refused: { form: 'below', state } });
    };
    const { value, error } = readThreshold(values.below);
    if (value === null) return refuse(error);
    const { thresholds } = await context.webhooks();
    const result = await thresholds.add(viewer.account, value);
    if (result === 'too-many')
      return refuse(`An account can have at most ${THRESHOLDS_MAX} thresholds. Remove one first.`);
    return done(reply, result);
  });

  on('POST /console/thresholds/remove', async (request, reply, viewer) => {
    const threshold = thresholdOf(formField(request, 'below'));
    const { thresholds } = await context.webhooks();
    if (threshold !== null) await thresholds.remove(viewer.account, threshold);
    return done(reply, 'removed');
  });

  on('POST /console/thresholds/expiring', async (request, reply, viewer) => {
    const values = { days: formField(request, 'days') };
    const { value, error } = readExpiringDays(values.days);
    if (value === null) {
      const state = { values, errors: { days: error } };
      return sendThresholds(context, { request, reply, viewer, refused: { form: 'days', state } });
    }
    const { thresholds } = await context.webhooks();
    await thresholds.setExpiringDays(viewer.account, value);
    return done(reply, 'expiring');
  });
}

function readThreshold(text: string): FieldReading<Threshold> {
  const entered = text.replaceAll(/\s/g, '');
  const value = thresholdOf(entered);
  if (value !== null) return { value, error: null };
  const numberError = /^\d[^%]*$/.test(entered) ? readAmount(entered).error : null;
  return { value, error: numberError ?? 'Enter a number of credits, such as 20, or a percentage from 1% to 100%.' };
}

function readExpiringDays(text: string): FieldReading<number> {
  const reading = readDays(text);
  if (reading.value === null || reading.value <= EXPIRING_DAYS_MAX) return reading;
  return { value: null, error: `Enter at most ${EXPIRING_DAYS_MAX} days.` };
}

function done(reply: FastifyReply, notice: keyof typeof NOTICES): FastifyReply {
  return redirectTo(reply, `${THRESHOLDS_PATH}?notice=${notice}`);
}

async function sendThresholds(
  context: ConsoleContext,
  { request, reply, viewer, refused }: ViewerRequest & Pick<ThresholdsView, 'refused'>,
): Promise<FastifyReply> {
  const { thresholds } = await context.webhooks();
  const [list, expiringDays] = await Promise.all([
    thresholds.list(viewer.account),
    thresholds.expiringDays(viewer.account),
  ]);
  const notice = refused === null ? noticeOf(request, NOTICES) : null;
  return sendPage(reply, thresholdsPage({ thresholds: list, expiringDays, refused }, { viewer, notice }));
}
