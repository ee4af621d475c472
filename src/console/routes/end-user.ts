// Routes for the page of an end user and its forms. A form becomes a command with the console user as its actor. The
// command goes through group commit, like an API request.

import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommitResult } from '../../batching/group-commit.ts';
import { activeBalance, cyclesAt } from '../../ledger/balance.ts';
import type { EndUserKey, Idempotency } from '../../ledger/command.ts';
import type { PageCursor } from '../../store/ledger-store.ts';
import { InvalidCursor } from '../../store/store-fault.ts';
import type { ConsoleContext } from '../console-context.ts';
import type { Viewer } from '../layout.ts';
import { ADJUST_FORMS, ADJUSTMENTS, type AdjustForms, type Adjustment } from '../pages/adjust-forms.ts';
import { endUserPage } from '../pages/end-user.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On } from '../permissions.ts';
import { formField, pathField, queryField, redirectTo, sendCsv, sendError, sendPage } from '../request-reply.ts';
import { actorNames, actorOf } from './actor-names.ts';
import { faultErrors, type NotedCommand, readChange, refusalErrors } from './change-form.ts';
import { historyLines, readChart, readFilter, readHistory } from './end-user-history.ts';
import { normalizedUuid } from './end-users.ts';

/** The length of a UUID. The forms use UUIDs as idempotency keys. */
const IDEMPOTENCY_KEY_CHARACTERS_MAX = 36;

interface EndUserRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly viewer: Viewer;
  readonly user: EndUserKey;
}

export function endUserRoutes(on: On, context: ConsoleContext): void {
  const forEndUser =
    (handle: (endUserRequest: EndUserRequest) => Promise<FastifyReply>) =>
    (request: FastifyRequest, reply: FastifyReply, viewer: Viewer) => {
      const endUser = normalizedUuid(pathField(request, 'endUser'));
      if (endUser === null)
        return sendError(reply, 404, { title: 'End user not found', detail: 'That is not a valid UUID.' }, viewer);
      return handle({ request, reply, viewer, user: { account: viewer.account, endUser } });
    };
  on(
    'GET /console/end-users/:endUser',
    forEndUser((endUserRequest) => showPage(context, endUserRequest)),
  );
  on(
    'GET /console/end-users/:endUser/transactions.csv',
    forEndUser((endUserRequest) => sendHistory(context, endUserRequest)),
  );
  for (const adjustment of ADJUSTMENTS) {
    on(
      `POST /console/end-users/:endUser/${adjustment}`,
      forEndUser((endUserRequest) => adjust(context, adjustment, endUserRequest)),
    );
  }
}

async function showPage(context: ConsoleContext, endUserRequest: EndUserRequest): Promise<FastifyReply> {
  const { request, reply, user } = endUserRequest;
  const from = queryField(request, 'page') || null;
  try {
    return await sendEndUser(context, endUserRequest, { from, refused: null });
  } catch (error) {
    if (from !== null && error instanceof InvalidCursor) return redirectTo(reply, pathOf(user));
    throw error;
  }
}

async function sendHistory(context: ConsoleContext, { request, reply, user }: EndUserRequest): Promise<FastifyReply> {
  const { range } = readFilter(request);
  if (range === null) return redirectTo(reply, pathOf(user));
  const nameOf = await actorNames(context, user.account);
  const lines = historyLines(context.options.stores.console, user, range, nameOf);
  return sendCsv(reply, `transactions-${user.endUser}`, lines);
}

interface PageOptions {
  /** The cursor at which the transactions begin; null for the latest transactions. */
  readonly from: PageCursor | null;
  readonly refused: AdjustForms['refused'];
  /**
   * Keys that forms use again. After a fault, a form keeps its key, so that sending the form again takes effect once.
   */
  readonly idempotencyKeys?: Partial<AdjustForms['idempotencyKeys']>;
}

async function sendEndUser(
  context: ConsoleContext,
  { request, reply, viewer, user }: EndUserRequest,
  { from, refused, idempotencyKeys = {} }: PageOptions,
): Promise<FastifyReply> {
  const { stores } = context.options;
  const nameOf = await actorNames(context, user.account);
  const { state, now } = await stores.ledger.load(user);
  const cycles = cyclesAt(state, now);
  const { filter, range, errors } = readFilter(request);
  const { transactions, next, openings } = await readHistory(stores.console, user, from, range ?? {});
  const chart =
    from === null ? await readChart(stores.console, user, now) : { balanceOverTime: null, isPastCut: false };
  const view = {
    endUser: user.endUser,
    now,
    balance: activeBalance(cycles, now),
    cycles,
    ...chart,
    isFirstPage: from === null,
    history: transactions.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) })),
    older: next,
    openings,
    filter,
    filterErrors: errors,
    forms: { refused, idempotencyKeys: { ...newIdempotencyKeys(), ...idempotencyKeys } },
  };
  const done = ADJUSTMENTS.find((adjustment) => adjustment === queryField(request, 'notice'));
  const notice = done === undefined || refused !== null ? null : ADJUST_FORMS[done].notice;
  return sendPage(reply, endUserPage(view, { viewer, notice }));
}

function newIdempotencyKeys(): Record<Adjustment, string> {
  return { add: randomUUID(), subtract: randomUUID(), 'start-cycle': randomUUID(), 'stop-cycle': randomUUID() };
}

async function adjust(
  context: ConsoleContext,
  adjustment: Adjustment,
  endUserRequest: EndUserRequest,
): Promise<FastifyReply> {
  const { request, reply, viewer, user } = endUserRequest;
  const { state, command } = readChange(adjustment, request, { ...user, actor: actorOf(viewer) });
  const refuse = (errors: FormState['errors'], idempotencyKeys: PageOptions['idempotencyKeys'] = {}) =>
    sendEndUser(context, endUserRequest, {
      from: null,
      refused: { adjustment, state: { ...state, errors } },
      idempotencyKeys,
    });
  if (command === null) return refuse(state.errors);
  const noted: NotedCommand = { ...command, idempotency: idempotencyOf(request) };
  const result = await new Promise<CommitResult>((resolve) => context.options.commit.submit(noted, resolve));
  if ('code' in result) return refuse(faultErrors(result), { [adjustment]: idempotencyKeyOf(request) || randomUUID() });
  const errors = refusalErrors(result);
  return errors === null ? redirectTo(reply, `${pathOf(user)}?notice=${adjustment}`) : refuse(errors);
}

/** The prefix prevents collisions with idempotency keys of API requests. */
function idempotencyOf(request: FastifyRequest): Idempotency | null {
  const key = idempotencyKeyOf(request);
  return key === '' ? null : { key: `console ${key}`, requestId: request.id };
}

function idempotencyKeyOf(request: FastifyRequest): string {
  return formField(request, 'idempotency_key').slice(0, IDEMPOTENCY_KEY_CHARACTERS_MAX);
}

function pathOf({ endUser }: EndUserKey): string {
  return `/console/end-users/${endUser}`;
}
