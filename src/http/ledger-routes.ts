// The six endpoints of the interface: a request becomes a command or a read, an outcome becomes a response. No rule of
// the ledger is here.

import type { Readable } from 'node:stream';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify';
import { may, type Scope } from '../accounts/api-key.ts';
import type { RateLimit } from '../accounts/rate-limit.ts';
import { CANCELED, type GroupCommit } from '../batching/group-commit.ts';
import { activeBalance } from '../ledger/balance.ts';
import type {
  Accepted,
  Add,
  Command,
  EndUserKey,
  Outcome,
  StartCycle,
  StopCycle,
  Subtract,
} from '../ledger/command.ts';
import type { Cycle as LedgerCycle } from '../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../ledger/instant.ts';
import { cyclesAt } from '../ledger/settle.ts';
import { type Store, StoreFault } from '../store/store.ts';
import type { Authenticator, Caller } from './authenticate.ts';
import { connectionOf } from './connection.ts';
import type { ConnectionTurns } from './connection-turns.ts';
import { idempotencyOf } from './idempotency-key.ts';
import * as operations from './ledger-operations.ts';
import { ListReader } from './list-reader.ts';
import { listRequestOf, readInstants, readLimitOfQuery } from './list-request.ts';
import { balanceText, cycleObject, movedText } from './objects.ts';
import type { ListTurns } from './page-turns.ts';
import { InvalidRequest, pointerTo, sendFailure, sendFault, sendInvalid, sendProblem, sendRefusal } from './problem.ts';
import { admitAtRate } from './rate-headers.ts';
import type * as schemas from './schemas.ts';
import { transactionList } from './transaction-list.ts';
import type { UnsentAnswers } from './unsent-answers.ts';
import type { Holder, WorkInFlight } from './work-in-flight.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any handler of this file runs. */
    caller: Caller;
    /** Where it is among the work in flight; null when it is not. */
    holder: Holder | null;
  }
}

export interface LedgerRoutesOptions {
  readonly store: Store;
  readonly commit: GroupCommit;
  readonly authenticator: Authenticator;
  readonly work: WorkInFlight;
  readonly turns: ConnectionTurns;
  readonly listTurns: ListTurns;
  readonly unsent: UnsentAnswers;
  /** How often each key may call; null or absent where that is not limited. */
  readonly rateLimit?: RateLimit | null;
}

export function ledgerRoutes(app: FastifyInstance, options: LedgerRoutesOptions): void {
  writeRoutes(app, options);
  readRoutes(app, options);
}

/**
 * Gives a request its place among the work in flight, and finds out who calls. Whatever comes of it, it leaves its place
 * when it is answered (`server.ts`), also where its client has gone.
 */
function admission(options: LedgerRoutesOptions, scope: Scope): onRequestHookHandler {
  const { authenticator, work } = options;
  return (request, reply, done) => {
    reply.header('cache-control', 'no-store');
    const { isFull } = work;
    request.holder = work.enter();
    if (isFull) return sendFault(reply, { code: 'Overloaded' });
    const caller = authenticator.authenticate(request.raw, connectionOf(request.raw.socket));
    if (!(caller instanceof Promise)) {
      if (admit(options, scope, caller, request, reply)) done();
      return;
    }
    caller.then(
      (found) => {
        if (admit(options, scope, found, request, reply)) done();
      },
      (error) => sendFailure(reply, error),
    );
  };
}

/** @returns whether the request may go on; it is answered when it may not */
function admit(
  { work, turns, rateLimit = null }: LedgerRoutesOptions,
  scope: Scope,
  caller: Caller | null,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  if (caller === null) {
    const detail = 'Send one header `Authorization: Bearer <API key>` with a key that is not revoked.';
    sendProblem(reply, 'Unauthorized', { detail });
    return false;
  }
  if (rateLimit !== null && !admitAtRate(rateLimit, caller.id, reply)) return false;
  if (!may(caller.scope, scope)) {
    const detail = 'This key has the scope `read`; the call needs one with the scope `write`.';
    sendProblem(reply, 'Forbidden', { detail });
    return false;
  }
  turns.belongsTo(connectionOf(request.raw.socket), caller.account, request.startedAt);
  const holder = work.claim(caller.account);
  if (holder === null) {
    sendFault(reply, { code: 'Overloaded' });
    return false;
  }
  request.holder = holder;
  request.caller = caller;
  return true;
}

function writeRoutes(app: FastifyInstance, options: LedgerRoutesOptions): void {
  const { commit } = options;
  const onRequest = admission(options, 'write');

  app.post<{ Body: schemas.AddRequest }>('/add', { onRequest, schema: operations.add }, (request, reply) => {
    const { amount, validity_days } = request.body;
    const command = {
      kind: 'add',
      account: request.caller.account,
      endUser: endUserIn(request.body),
      actor: request.caller.actor,
      idempotency: idempotencyOf(request),
      amount,
      validityDays: validityDaysOf(validity_days),
    } as const;
    submit(commit, request, reply, command, moved);
  });

  app.post<{ Body: schemas.SubtractRequest }>(
    '/subtract',
    { onRequest, schema: operations.subtract },
    (request, reply) => {
      const command = {
        kind: 'subtract',
        account: request.caller.account,
        endUser: endUserIn(request.body),
        actor: request.caller.actor,
        idempotency: idempotencyOf(request),
        amount: request.body.amount,
      } as const;
      submit(commit, request, reply, command, moved);
    },
  );

  app.post<{ Body: schemas.StartCycleRequest }>(
    '/start-cycle',
    { onRequest, schema: operations.startCycle },
    (request, reply) => {
      const { amount, validity_days, on_active } = request.body;
      const command = {
        kind: 'start-cycle',
        account: request.caller.account,
        endUser: endUserIn(request.body),
        actor: request.caller.actor,
        idempotency: idempotencyOf(request),
        amount,
        validityDays: validityDaysOf(validity_days),
        onActive: on_active ?? 'refuse',
      } as const;
      submit(commit, request, reply, command, cycleOf);
    },
  );

  app.post<{ Body: schemas.StopCycleRequest }>(
    '/stop-cycle',
    { onRequest, schema: operations.stopCycle },
    (request, reply) => {
      const command = {
        kind: 'stop-cycle',
        account: request.caller.account,
        endUser: endUserIn(request.body),
        actor: request.caller.actor,
        idempotency: idempotencyOf(request),
      } as const;
      submit(commit, request, reply, command, cycleOf);
    },
  );
}

function readRoutes(app: FastifyInstance, options: LedgerRoutesOptions): void {
  const { store, work, listTurns, unsent } = options;
  const onRequest = admission(options, 'read');
  const preValidation = mergeBodyIntoQuery;

  app.get<{ Querystring: schemas.EndUserQuery }>(
    '/get-active-balance',
    {
      onRequest,
      preValidation,
      schema: operations.getActiveBalance,
    },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      store
        .cycles(user)
        .then(({ now, cycles }) => {
          const current = cyclesAt(cycles, now);
          sendWhole(unsent, request, reply, balanceText(user.endUser, current, activeBalance(current, now)));
        })
        .catch((error) => sendFailure(reply, error));
    },
  );

  app.get<{ Querystring: schemas.TransactionListQuery }>(
    '/get-all-user-transactions',
    {
      onRequest,
      preValidation: mergeListFields,
      schema: operations.getAllUserTransactions,
    },
    (request, reply) => {
      const reader = new ListReader(listTurns, work, request, reply);
      transactionList(store, listRequestOf(endUserOf(request, request.query), request.query), reader)
        .then((document) => {
          if (typeof document === 'string') sendWhole(unsent, request, reply, document);
          else sendJson(reply, reader.stream(document));
        })
        .catch((error) => {
          if (error instanceof InvalidRequest) sendInvalid(reply, error);
          else if (error === CANCELED) sendFault(reply, CANCELED);
          else sendFailure(reply, error);
        });
    },
  );
}

/** The account comes from the key alone. */
function endUserOf(request: FastifyRequest, fields: { end_user_id: string }): EndUserKey {
  return { account: request.caller.account, endUser: endUserIn(fields) };
}

/** UUIDs are the same in either case, and kept in lower case. */
function endUserIn(fields: { end_user_id: string }): string {
  return fields.end_user_id.toLowerCase();
}

function validityDaysOf(days: number | null | undefined): number {
  return Math.min(days ?? VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX);
}

function moved({ endUser, amount }: Add | Subtract): string {
  return movedText(endUser, amount);
}

function cycleOf({ endUser }: StartCycle | StopCycle, { cycle }: Accepted): string {
  return JSON.stringify(cycleObject(endUser, cycle as LedgerCycle));
}

function sendJson(reply: FastifyReply, document: string | Readable): void {
  reply.header('content-type', 'application/json; charset=utf-8').send(document);
}

/** What is read may be large, and its client slow. */
function sendWhole(unsent: UnsentAnswers, request: FastifyRequest, reply: FastifyReply, document: string): void {
  if (unsent.begin(request.caller.account, document.length, reply.raw)) sendJson(reply, document);
  else sendFault(reply, { code: 'Overloaded' });
}

type Write = Exclude<Command, { kind: 'renew' }>;

function submit<Asked extends Write>(
  commit: GroupCommit,
  request: FastifyRequest,
  reply: FastifyReply,
  command: Asked,
  respond: (command: Asked, accepted: Accepted) => string,
): void {
  const connection = connectionOf(request.raw.socket);
  if (connection.isOver(request.raw)) {
    // Nobody reads it.
    sendProblem(reply, 'BadRequest', { detail: 'It came behind a request whose answer closed the connection.' });
    return;
  }
  const answer = (result: Outcome | StoreFault) => {
    if (result instanceof StoreFault) return sendFault(reply, result);
    if (result.replayOf !== undefined) reply.header('idempotent-replayed', 'true');
    if (result.refused === null) sendJson(reply, respond(command, result));
    else sendRefusal(reply, command.endUser, result.replayOf ?? request.id, result);
  };
  commit.submit(command, answer, connection);
}

const mergeBodyIntoQuery: preValidationHookHandler = (request, _reply, done) => {
  request.query = mergedFields(request.query as Fields, request.body);
  done();
};

const mergeListFields: preValidationHookHandler = (request, _reply, done) => {
  request.query = readInstants(mergedFields(readLimitOfQuery(request.query as Fields), request.body));
  done();
};

type Fields = Record<string, unknown>;

/**
 * A GET takes its fields from the body, as the interface has it, or from the query; the same ones twice must agree.
 *
 * @throws InvalidRequest
 */
function mergedFields(query: Fields, body: unknown): Fields {
  if (body === undefined) return query;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new InvalidRequest('InvalidField', 'The body must be a JSON object.', [
      { path: '', message: 'must be object' },
    ]);
  const differing = Object.entries(body).filter(([name, value]) => Object.hasOwn(query, name) && query[name] !== value);
  if (differing.length > 0) {
    const errors = differing.map(([name]) => ({
      path: pointerTo(name),
      message: 'is one thing in the body and another in the query',
    }));
    throw new InvalidRequest('InvalidField', 'The body and the query differ.', errors);
  }
  return { ...query, ...body };
}
