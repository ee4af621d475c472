// Routes for the end user page and the forms that adjust credits.

import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { activeBalance, cyclesAt } from '../../../ledger/balance.ts';
import { heldAt } from '../../../ledger/hold.ts';
import type { PageCursor } from '../../../store/loaded-end-user.ts';
import { InvalidCursor } from '../../../store/store-fault.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { ADJUSTMENTS, type AdjustForms, type Adjustment, NOTICES } from '../../pages/end-user/adjust-forms.ts';
import { endUserPage } from '../../pages/end-user/end-user.ts';
import { endUserPath } from '../../pages/end-user/end-user-paths.ts';
import type { FormState } from '../../pages/form-field.ts';
import type { On } from '../../permissions.ts';
import { queryField, redirectTo, sendCsv, sendPage } from '../../request-reply.ts';
import { actorNames, actorOf } from '../actor-names.ts';
import { readBalanceOverTime } from './balance-over-time.ts';
import { readChange } from './change-form.ts';
import { type EndUserRequest, forEndUser } from './end-user-request.ts';
import { historyLines, NO_HISTORY, readFilter, readHistory } from './history.ts';
import { readHolds } from './holds.ts';
import { newPreview, startNotice, unconfirmed } from './plan-change.ts';
import { refusalErrors, submitChange } from './submit-change.ts';
import { transactionNotice, transactionRoutes } from './transaction.ts';

export function endUserRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/end-users/:endUser', forEndUser(context, showPage));
  on('GET /console/end-users/:endUser/transactions.csv', forEndUser(context, sendHistory));
  for (const adjustment of ADJUSTMENTS)
    on(`POST /console/end-users/:endUser/${adjustment}`, forEndUser(context, adjust, adjustment));
  transactionRoutes(on, context);
}

async function showPage(context: ConsoleContext, endUserRequest: EndUserRequest): Promise<FastifyReply> {
  const { request, reply, user } = endUserRequest;
  const from = queryField(request, 'page') || null;
  try {
    return await sendEndUser(context, endUserRequest, { from, refused: null });
  } catch (error) {
    if (from !== null && error instanceof InvalidCursor) return redirectTo(reply, endUserPath(user.endUser));
    throw error;
  }
}

async function sendHistory(context: ConsoleContext, { request, reply, user }: EndUserRequest): Promise<FastifyReply> {
  const { wanted } = readFilter(request);
  if (wanted === null) return redirectTo(reply, endUserPath(user.endUser));
  const nameOf = await actorNames(context, user.account);
  const lines = historyLines(context.options.stores.ledger, user, wanted, nameOf);
  return sendCsv(reply, `transactions-${user.endUser}`, lines);
}

interface PageOptions {
  /** The cursor at which the transactions begin; null for the latest transactions. */
  readonly from: PageCursor | null;
  readonly refused: AdjustForms['refused'];
  /** The idempotency keys of the refused forms that the page shows again. */
  readonly idempotencyKeys?: Partial<AdjustForms['idempotencyKeys']>;
}

async function sendEndUser(
  context: ConsoleContext,
  endUserRequest: EndUserRequest,
  { from, refused, idempotencyKeys = {} }: PageOptions,
): Promise<FastifyReply> {
  const { request, reply, viewer, user } = endUserRequest;
  const { ledger } = context.options.stores;
  const nameOf = await actorNames(context, user.account);
  const loaded = await ledger.load(user);
  const { state, now } = loaded;
  const cycles = cyclesAt(state, now);
  const { filter, wanted, errors } = readFilter(request);
  const [{ transactions, next, ...shown }, holds, balanceOverTime] = await Promise.all([
    wanted === null ? NO_HISTORY : readHistory(ledger, user, from, wanted),
    readHolds(ledger, user, loaded, nameOf),
    from === null ? readBalanceOverTime(ledger, user, loaded) : null,
  ]);
  const newKeys = Object.fromEntries(ADJUSTMENTS.map((one) => [one, randomUUID()])) as Record<Adjustment, string>;
  const view = {
    endUser: user.endUser,
    now,
    balance: activeBalance(cycles, now),
    held: heldAt(state.holds, now),
    cycles,
    ...holds,
    balanceOverTime,
    isFirstPage: from === null,
    history: transactions.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) })),
    older: next,
    ...shown,
    filter,
    filterErrors: errors,
    forms: { refused, idempotencyKeys: { ...newKeys, ...idempotencyKeys } },
  };
  const notice = refused === null ? await noticeOf(context, endUserRequest) : null;
  return sendPage(reply, endUserPage(view, { viewer, notice }));
}

async function noticeOf(context: ConsoleContext, endUserRequest: EndUserRequest): Promise<string | null> {
  const done = ADJUSTMENTS.find((adjustment) => adjustment === queryField(endUserRequest.request, 'notice'));
  if (done === undefined) return transactionNotice(context, endUserRequest);
  return done === 'start-cycle' ? startNotice(context, endUserRequest) : NOTICES[done];
}

async function adjust(
  context: ConsoleContext,
  endUserRequest: EndUserRequest,
  adjustment: Adjustment,
): Promise<FastifyReply> {
  const { request, reply, viewer, user } = endUserRequest;
  const { state, command } = readChange({ kind: adjustment }, request, { ...user, actor: actorOf(viewer) });
  const refuse = (errors: FormState['errors'], idempotencyKeys: PageOptions['idempotencyKeys'] = {}) =>
    sendEndUser(context, endUserRequest, {
      from: null,
      refused: { adjustment, state: { ...state, errors } },
      idempotencyKeys,
    });
  if (command === null) return refuse(state.errors);
  if (command.kind === 'start-cycle') {
    const preview = await unconfirmed(context, command, state.values, endUserRequest);
    if (typeof preview === 'string') return sendPage(reply, preview);
    if (preview !== null) return refuse(refusalErrors(preview, command));
  }
  const submitted = await submitChange(context, request, command);
  if (submitted.errors === null) {
    const started = adjustment === 'start-cycle' ? `&transaction=${submitted.transactionId}` : '';
    return redirectTo(reply, `${endUserPath(user.endUser)}?notice=${adjustment}${started}`);
  }
  if (command.kind === 'start-cycle' && submitted.refused === 'CycleAlreadyActive') {
    const preview = await newPreview(context, command, state.values, endUserRequest);
    if (preview !== null) return sendPage(reply, preview);
  }
  return refuse(submitted.errors, { [adjustment]: submitted.idempotencyKey });
}
