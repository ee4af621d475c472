// The six endpoints of the interface: a request becomes a command or a read, an outcome becomes a response. No rule of
// the ledger is here.

import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler } from 'fastify';
import { type ApiKey, may, type Scope } from '../accounts/api-key.ts';
import type { RateLimit } from '../accounts/rate-limit.ts';
import type { Answer, GroupCommit } from '../commit/group-commit.ts';
import { activeBalance } from '../ledger/balance.ts';
import type { Accepted, EndUserKey, Idempotency } from '../ledger/command.ts';
import type { Cycle as LedgerCycle } from '../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../ledger/instant.ts';
import type { Actor } from '../ledger/posting.ts';
import { cyclesAt } from '../ledger/settle.ts';
import { type Store, StoreFault } from '../store/store.ts';
import type { Authenticator } from './authenticate.ts';
import { stopAtClose } from './closed-connections.ts';
import type { ConnectionTurns } from './connection-turns.ts';
import { idempotencyOf } from './idempotency-key.ts';
import * as operations from './ledger-operations.ts';
import { listRequestOf, readInstants, readLimitOfQuery } from './list-request.ts';
import { cycleEntry, cycleObject } from './objects.ts';
import { InvalidRequest, pointerTo, sendFailure, sendFault, sendInvalid, sendProblem, sendRefusal } from './problem.ts';
import { admitAtRate } from './rate-headers.ts';
import type * as schemas from './schemas.ts';
import { transactionList } from './transaction-list.ts';
import type { Holder, WorkInFlight } from './work-in-flight.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook below, before any handler of this file runs. */
    apiKey: ApiKey;
    /** Where it is among the work in flight; null when it is not. */
    holder: Holder | null;
  }
  interface FastifyContextConfig {
    scope?: Scope;
  }
}

export interface LedgerRoutesOptions {
  readonly store: Store;
  readonly commit: GroupCommit;
  readonly authenticator: Authenticator;
  readonly work: WorkInFlight;
  readonly turns: ConnectionTurns;
  /** How often each key may call; null or absent where that is not limited. */
  readonly rateLimit?: RateLimit | null;
}

export function ledgerRoutes(app: FastifyInstance, options: LedgerRoutesOptions): void {
  stopAtClose(app);
  boundWorkInFlight(app, options.work);
  authenticateAll(app, options);
  writeRoutes(app, options.commit);
  readRoutes(app, options);
}

function boundWorkInFlight(app: FastifyInstance, work: WorkInFlight): void {
  app.decorateRequest('holder', null);
  app.addHook('onRequest', (request, reply, done) => {
    const { isFull } = work;
    request.holder = work.enter();
    if (isFull) sendFault(reply, { code: 'Overloaded' });
    else done();
  });
  // Every request comes to send a reply, also the one whose client has gone, and the one that was turned away earlier.
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (request.holder !== null) work.leave(request.holder);
    request.holder = null;
    reply.header('cache-control', 'no-store');
    done();
  });
}

function authenticateAll(app: FastifyInstance, options: LedgerRoutesOptions): void {
  const { authenticator, work, turns, rateLimit = null } = options;
  app.decorateRequest('apiKey');
  app.addHook('onRequest', (request, reply, done) => {
    const admit = (key: ApiKey | null) => {
      if (key === null) {
        sendProblem(reply, 'Unauthorized', {
          detail: 'Send one header `Authorization: Bearer <API key>` with a key that is not revoked.',
        });
        return;
      }
      if (rateLimit !== null && !admitAtRate(rateLimit, key.id, reply)) return;
      if (!may(key.scope, reply.routeOptions.config.scope ?? 'write')) {
        sendProblem(reply, 'Forbidden', {
          detail: 'This key has the scope `read`; the call needs one with the scope `write`.',
        });
        return;
      }
      turns.belongsTo(request.raw.socket, key.account);
      const holder = work.claim(key.account);
      if (holder === null) return sendFault(reply, { code: 'Overloaded' });
      request.holder = holder;
      request.apiKey = key;
      done();
    };
    const key = authenticator.authenticate(request.raw);
    if (key instanceof Promise) key.then(admit, (error) => sendFailure(reply, error));
    else admit(key);
  });
}

function writeRoutes(app: FastifyInstance, commit: GroupCommit): void {
  const config = { scope: 'write' } as const;

  app.post<{ Body: schemas.AddRequest }>(
    '/add',
    {
      config,
      schema: operations.add,
    },
    (request, reply) => {
      const { amount, validity_days } = request.body;
      const user = endUserOf(request, request.body);
      commit.submit(
        { kind: 'add', ...user, ...originOf(request), amount, validityDays: validityDaysOf(validity_days) },
        (result) => settleReply(reply, user, result, () => ({ end_user_id: user.endUser, amount })),
      );
    },
  );

  app.post<{ Body: schemas.SubtractRequest }>(
    '/subtract',
    {
      config,
      schema: operations.subtract,
    },
    (request, reply) => {
      const { amount } = request.body;
      const user = endUserOf(request, request.body);
      commit.submit({ kind: 'subtract', ...user, ...originOf(request), amount }, (result) =>
        settleReply(reply, user, result, () => ({ end_user_id: user.endUser, amount })),
      );
    },
  );

  app.post<{ Body: schemas.StartCycleRequest }>(
    '/start-cycle',
    {
      config,
      schema: operations.startCycle,
    },
    (request, reply) => {
      const { amount, validity_days, on_active } = request.body;
      const user = endUserOf(request, request.body);
      const onActive = on_active ?? 'refuse';
      commit.submit(
        {
          kind: 'start-cycle',
          ...user,
          ...originOf(request),
          amount,
          validityDays: validityDaysOf(validity_days),
          onActive,
        },
        (result) => settleReply(reply, user, result, ({ cycle }) => cycleObject(user.endUser, cycle as LedgerCycle)),
      );
    },
  );

  app.post<{ Body: schemas.StopCycleRequest }>(
    '/stop-cycle',
    {
      config,
      schema: operations.stopCycle,
    },
    (request, reply) => {
      const user = endUserOf(request, request.body);
      commit.submit({ kind: 'stop-cycle', ...user, ...originOf(request) }, (result) =>
        settleReply(reply, user, result, ({ cycle }) => cycleObject(user.endUser, cycle as LedgerCycle)),
      );
    },
  );
}

function readRoutes(app: FastifyInstance, { store, work }: LedgerRoutesOptions): void {
  const config = { scope: 'read' } as const;
  const preValidation = mergeBodyIntoQuery;

  app.get<{ Querystring: schemas.EndUserQuery }>(
    '/get-active-balance',
    {
      config,
      preValidation,
      schema: operations.getActiveBalance,
    },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      store
        .cycles(user)
        .then(({ now, cycles }) => {
          const current = cyclesAt(cycles, now);
          reply.send({
            end_user_id: user.endUser,
            active_balance_by_cycle: current.map(cycleEntry),
            active_balance: activeBalance(current, now),
          });
        })
        .catch((error) => sendFailure(reply, error));
    },
  );

  app.get<{ Querystring: schemas.TransactionListQuery }>(
    '/get-all-user-transactions',
    {
      config,
      preValidation: mergeListFields,
      schema: operations.getAllUserTransactions,
    },
    (request, reply) => {
      transactionList(store, listRequestOf(endUserOf(request, request.query), request.query))
        .then((document) => {
          if (typeof document !== 'string') countStream(work, document, request);
          reply.header('content-type', 'application/json; charset=utf-8').send(document);
        })
        .catch((error) => {
          if (error instanceof InvalidRequest) sendInvalid(reply, error);
          else sendFailure(reply, error);
        });
    },
  );
}

/** A stream goes on being work after its headers are sent, for as long as the client takes to read it. */
function countStream(work: WorkInFlight, stream: Readable, { holder, log }: FastifyRequest): void {
  assert(holder, 'its request is still counted');
  work.add(holder);
  stream.once('error', (error) => log.error({ err: error }, 'a list broke off'));
  stream.once('close', () => work.leave(holder));
}

/** The account comes from the key alone. UUIDs are the same in either case, and kept in lower case. */
function endUserOf(request: FastifyRequest, fields: { end_user_id: string }): EndUserKey {
  return { account: request.apiKey.account, endUser: fields.end_user_id.toLowerCase() };
}

/** Who asks, and whether it may be a repetition. */
function originOf(request: FastifyRequest): { actor: Actor; idempotency: Idempotency | null } {
  return { actor: `key:${request.apiKey.id}`, idempotency: idempotencyOf(request) };
}

function validityDaysOf(days: number | null | undefined): number {
  return Math.min(days ?? VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX);
}

function settleReply(
  reply: FastifyReply,
  user: EndUserKey,
  result: Parameters<Answer>[0],
  respond: (accepted: Accepted) => unknown,
): void {
  if (result instanceof StoreFault) {
    sendFault(reply, result);
    return;
  }
  if (result.replayOf !== undefined) reply.header('idempotent-replayed', 'true');
  if (result.refused === null) reply.send(respond(result));
  else sendRefusal(reply, user.endUser, result.replayOf ?? reply.request.id, result);
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
