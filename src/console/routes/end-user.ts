// The page of one end user, and what its forms do. All that they do goes through group commit, like every request of
// the API, with who did it and why.

import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { activeBalance } from '../../ledger/balance.ts';
import type { EndUserKey, Idempotency, Outcome } from '../../ledger/command.ts';
import { cyclesAt } from '../../ledger/settle.ts';
import type { PageCursor } from '../../store/loaded.ts';
import { StoreFault } from '../../store/store.ts';
import { type AdjustForms, CHANGES, type Change } from '../pages/adjust-forms.ts';
import { changeText, endUserPage } from '../pages/end-user.ts';
import { errorPage } from '../pages/error.ts';
import { faultErrors, type NotedCommand, readChange, refusalErrors } from './change-form.ts';
import {
  type ConsolePorts,
  formField,
  goTo,
  isInvalidCursor,
  pathField,
  queryField,
  type RouteTable,
  sendPage,
  type Viewer,
} from './console-ports.ts';
import { chartOf, historyOf } from './end-user-history.ts';
import { wholeUuid } from './end-users.ts';
import { namesOf } from './people.ts';

/** As long as a UUID, which is what a form of ours carries. */
const ONCE_CHARACTERS_MAX = 36;

type RouteName = 'GET /console/end-users/:endUser' | `POST /console/end-users/:endUser/${Change}`;

interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly viewer: Viewer;
  readonly user: EndUserKey;
}

export function endUserRoutes(routes: RouteTable<RouteName>, ports: ConsolePorts): void {
  const forEndUser =
    (handle: (visit: Visit) => Promise<FastifyReply>) =>
    (request: FastifyRequest, reply: FastifyReply, viewer: Viewer) => {
      const endUser = wholeUuid(pathField(request, 'endUser'));
      if (endUser === null) return showNoUuid(reply, viewer);
      return handle({ request, reply, viewer, user: { account: viewer.account, endUser } });
    };
  routes.on(
    'GET /console/end-users/:endUser',
    forEndUser((visit) => showLatestOrOlder(ports, visit)),
  );
  for (const change of CHANGES) {
    routes.on(
      `POST /console/end-users/:endUser/${change}`,
      forEndUser((visit) => makeChange(ports, change, visit)),
    );
  }
}

async function showLatestOrOlder(ports: ConsolePorts, visit: Visit): Promise<FastifyReply> {
  const from = queryField(visit.request, 'from') || null;
  try {
    return await show(ports, visit, { from, refused: null });
  } catch (error) {
    if (from !== null && isInvalidCursor(error)) return goTo(visit.reply, pathOf(visit.user));
    throw error;
  }
}

interface Shown {
  readonly from: PageCursor | null;
  readonly refused: AdjustForms['refused'];
  /** What a form carries that may have been done already: sent again as it is, it is done once. */
  readonly once?: Partial<AdjustForms['once']>;
}

async function show(
  ports: ConsolePorts,
  { request, reply, viewer, user }: Visit,
  { from, refused, once = {} }: Shown,
): Promise<FastifyReply> {
  const nameOf = await namesOf(ports, user.account);
  const { cycles: stored, now } = await ports.cycles(user);
  const cycles = cyclesAt(stored, now);
  const history = await historyOf(ports.reads, user, { from, nameOf });
  const chart = from === null ? await chartOf(ports.reads, user, now) : { overTime: null, isPastCut: false };
  const done = CHANGES.find((change) => change === queryField(request, 'done'));
  const view = {
    endUser: user.endUser,
    now,
    balance: activeBalance(cycles, now),
    cycles,
    ...chart,
    isLatest: from === null,
    history: history.entries,
    older: history.next,
    forms: { refused, once: { ...freshValues(), ...once } },
  };
  return sendPage(
    reply,
    endUserPage(view, { viewer, notice: done === undefined || refused !== null ? null : changeText(done) }),
  );
}

function freshValues(): Record<Change, string> {
  return { add: randomUUID(), subtract: randomUUID(), 'start-cycle': randomUUID(), 'stop-cycle': randomUUID() };
}

async function makeChange(ports: ConsolePorts, change: Change, visit: Visit): Promise<FastifyReply> {
  const { request, reply, viewer, user } = visit;
  const { entered, command } = readChange(change, request, { ...user, actor: `user:${viewer.userId}` });
  const refuse = (errors: Readonly<Record<string, string>>, once: Shown['once'] = {}) =>
    show(ports, visit, { from: null, refused: { change, entered: { ...entered, errors } }, once });
  if (command === null) return refuse(entered.errors);
  const result = await submit(ports, { ...command, idempotency: onceFor(request) });
  if (result instanceof StoreFault) return refuse(faultErrors(result), { [change]: onceOf(request) || randomUUID() });
  const errors = refusalErrors(result);
  return errors === null ? goTo(reply, `${pathOf(user)}?done=${change}`) : refuse(errors);
}

/** A double click sends a form twice. What each form carries is an idempotency key, apart from those of the API. */
function onceFor(request: FastifyRequest): Idempotency | null {
  const once = onceOf(request);
  return once === '' ? null : { key: `console ${once}`, requestId: request.id };
}

function onceOf(request: FastifyRequest): string {
  return formField(request, 'once').slice(0, ONCE_CHARACTERS_MAX);
}

function submit({ commit }: ConsolePorts, command: NotedCommand): Promise<Outcome | StoreFault> {
  return new Promise((resolve) => commit.submit(command, resolve));
}

function pathOf({ endUser }: EndUserKey): string {
  return `/console/end-users/${endUser}`;
}

function showNoUuid(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'End users are named by UUIDs, and this is none.';
  return sendPage(reply, errorPage({ title: 'No such end user', detail, requestId: null }, { viewer }), 404);
}
