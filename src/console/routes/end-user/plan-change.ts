// The confirmation of a change of plan, and the notice after the change.

import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { cyclesAt } from '../../../ledger/balance.ts';
import type { Refusal, StartCycle } from '../../../ledger/command.ts';
import { isActiveRecurring } from '../../../ledger/cycle.ts';
import { planOf } from '../../../ledger/decision.ts';
import { previewOf } from '../../../ledger/preview.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { dayText } from '../../figures.ts';
import { NOTICES } from '../../pages/end-user/adjust-forms.ts';
import { CONFIRMED, planChangePage } from '../../pages/end-user/plan-change.ts';
import type { FormState } from '../../pages/form-field.ts';
import { formField, queryField, sendPage } from '../../request-reply.ts';
import { normalizedUuid } from '../end-users.ts';
import type { EndUserRequest } from './end-user-request.ts';

/** If no cycle was active when the form was loaded, `onActive` is `refuse`, and no confirmation is needed. */
export function needsConfirmation(command: StartCycle, { request }: EndUserRequest): boolean {
  return command.onActive !== 'refuse' && formField(request, CONFIRMED) === '';
}

/** Sends the page that previews the change. If the change is refused, sends nothing and returns the refusal. */
export async function sendPreview(
  { options }: ConsoleContext,
  command: StartCycle,
  values: FormState['values'],
  { request, reply, viewer, user }: EndUserRequest,
): Promise<FastifyReply | Refusal> {
  const { state, now } = await options.stores.ledger.load(user);
  const preview = previewOf(state, command, now);
  if (preview.refused !== null) return preview;
  const view = {
    endUser: user.endUser,
    now,
    activeCycle: cyclesAt(state, now).find(isActiveRecurring) ?? null,
    plan: planOf(command),
    note: command.note ?? null,
    preview,
    values,
    idempotencyKey: formField(request, 'idempotency_key') || randomUUID(),
  };
  return sendPage(reply, planChangePage(view, viewer));
}

export async function startNotice({ options }: ConsoleContext, { request, user }: EndUserRequest): Promise<string> {
  const id = normalizedUuid(queryField(request, 'transaction'));
  const [posting] = id === null ? [] : ((await options.stores.ledger.find(user, id))?.postings ?? []);
  if (posting?.kind !== 'schedule-plan') return NOTICES['start-cycle'];
  return `Change of plan scheduled for ${dayText(posting.expiresAt)}.`;
}
