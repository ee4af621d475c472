// The confirmation of a change of plan, and the notice after the change.

import { randomUUID } from 'node:crypto';
import { cyclesAt } from '../../../ledger/balance.ts';
import type { Refusal, StartCycle } from '../../../ledger/command.ts';
import { isActiveRecurring } from '../../../ledger/cycle.ts';
import { planOf } from '../../../ledger/decision.ts';
import { previewOf } from '../../../ledger/preview.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { momentUtcText } from '../../figures.ts';
import { NOTICES } from '../../pages/end-user/adjust-forms.ts';
import { CONFIRMED, planChangePage, STARTS_NOW } from '../../pages/end-user/plan-change.ts';
import type { FormState } from '../../pages/form-field.ts';
import { formField, queryField } from '../../request-reply.ts';
import { normalizedUuid } from '../end-users.ts';
import type { EndUserRequest } from './end-user-request.ts';

/**
 * Returns the preview of a change of plan if the user has not confirmed the change yet. Also returns a new preview if
 * the plan would no longer start at the time that the user confirmed, for example because the cycle was stopped in the
 * meantime.
 *
 * @returns the page with the preview, or why the change is refused; null if the change can be submitted. It can be
 * submitted in these cases:
 *
 * - The user has confirmed the preview, and the plan still starts at the confirmed time.
 * - The user has confirmed a preview, and the change would now be refused. Submitting it returns the refusal or, if an
 *   earlier attempt had the same idempotency key, the outcome of that attempt.
 * - No cycle was active when the form was loaded. In this case, `onActive` is `refuse`, and no confirmation is needed.
 */
export async function unconfirmed(
  { options }: ConsoleContext,
  command: StartCycle,
  values: FormState['values'],
  { request, viewer, user }: EndUserRequest,
): Promise<string | Refusal | null> {
  if (command.onActive === 'refuse') return null;
  const { state, now } = await options.stores.ledger.load(user);
  const preview = previewOf(state, command, now);
  const confirmed = formField(request, CONFIRMED);
  if (preview.refused !== null) return confirmed === '' ? preview : null;
  const start = preview.startsAt > now ? String(preview.startsAt) : STARTS_NOW;
  if (confirmed === start) return null;
  const view = {
    start,
    isChanged: confirmed !== '',
    endUser: user.endUser,
    activeCycle: cyclesAt(state, now).find(isActiveRecurring) ?? null,
    plan: planOf(command),
    note: command.note ?? null,
    preview,
    values,
    idempotencyKey: formField(request, 'idempotency_key') || randomUUID(),
  };
  return planChangePage(view, viewer);
}

export async function startNotice({ options }: ConsoleContext, { request, user }: EndUserRequest): Promise<string> {
  const id = normalizedUuid(queryField(request, 'transaction'));
  const [posting] = id === null ? [] : ((await options.stores.ledger.find(user, id))?.postings ?? []);
  if (posting?.kind !== 'schedule-plan') return NOTICES['start-cycle'];
  return `Change of plan scheduled for ${momentUtcText(posting.expiresAt)}.`;
}
