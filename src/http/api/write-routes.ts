// The four calls that write: converts a request to a command, and an outcome to a response. Contains no rules of the
// ledger.

import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { type CommitResult, type GroupCommit, NotBegun } from '../../batching/group-commit.ts';
import type { Accepted, Idempotency, Refusal, StartCycle, StopCycle, WriteCommand } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { StoreFault } from '../../store/store-fault.ts';
import { type Admission, admission, endUserOf } from '../admission/admit.ts';
import { connectionOf } from '../admission/connections.ts';
import { IDEMPOTENCY_KEY_MAX } from '../limits.ts';
import { type Particulars, sendNotBegun, sendProblem } from '../problem-reply.ts';
import { type InvalidRequest, invalidFields, refusalDetail } from '../problems.ts';
import * as operations from './operations.ts';
import { cycleObject, movedText, sendJson } from './replies.ts';
import type * as schemas from './schemas.ts';

export interface WriteRoutesOptions extends Admission {
  readonly commit: GroupCommit;
}

export function writeRoutes(app: FastifyInstance, options: WriteRoutesOptions): void {
  const { commit } = options;
  const onRequest = admission(options, 'write');
  const route = (schema: FastifySchema) => ({ onRequest, schema });

  app.post<{ Body: schemas.AddRequest }>('/add', route(operations.add), (request, reply) => {
    const { amount, validity_days } = request.body;
    const validityDays = validityDaysOf(validity_days);
    submit(commit, request, reply, { kind: 'add', ...issuedBy(request), amount, validityDays }, movedText);
  });

  app.post<{ Body: schemas.SubtractRequest }>('/subtract', route(operations.subtract), (request, reply) => {
    const { amount } = request.body;
    submit(commit, request, reply, { kind: 'subtract', ...issuedBy(request), amount }, movedText);
  });

  app.post<{ Body: schemas.StartCycleRequest }>('/start-cycle', route(operations.startCycle), (request, reply) => {
    const { amount, validity_days, on_active } = request.body;
    const terms = { amount, validityDays: validityDaysOf(validity_days), onActive: on_active ?? 'refuse' } as const;
    submit(commit, request, reply, { kind: 'start-cycle', ...issuedBy(request), ...terms }, cycleOf);
  });

  app.post<{ Body: schemas.StopCycleRequest }>('/stop-cycle', route(operations.stopCycle), (request, reply) =>
    submit(commit, request, reply, { kind: 'stop-cycle', ...issuedBy(request) }, cycleOf),
  );
}

type EndUserRequest = FastifyRequest<{ Body: schemas.StopCycleRequest }>;

/** The end user, the actor and the idempotency key of a command. */
function issuedBy(request: EndUserRequest): Omit<StopCycle, 'kind'> {
  const { account, endUser } = endUserOf(request, request.body);
  return { account, endUser, actor: request.caller.actor, idempotency: idempotencyOf(request) };
}

/** Printable ASCII. If a client sends the key in quotes, as the draft requires, the quotes are part of the key. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]+$/;

/**
 * Node joins two of these headers with this separator. `headersDistinct` is read only if it occurs, since that copies
 * all headers.
 */
const JOINED_BY = ', ';

/**
 * Reads https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header
 *
 * @returns null if the request has no key
 * @throws InvalidRequest
 */
function idempotencyOf(request: FastifyRequest): Idempotency | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (key.includes(JOINED_BY) && request.raw.headersDistinct['idempotency-key']?.length !== 1)
    throw invalidKey('must be sent once');
  if (typeof key !== 'string' || key.length < 1 || key.length > IDEMPOTENCY_KEY_MAX || !IDEMPOTENCY_KEY.test(key))
    throw invalidKey(`must have 1 to ${IDEMPOTENCY_KEY_MAX} printable ASCII characters`);
  return { key, requestId: request.id };
}

function invalidKey(message: string): InvalidRequest {
  return invalidFields([{ path: 'Idempotency-Key', message }]);
}

function validityDaysOf(days: number | null | undefined): number {
  return Math.min(days ?? VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX);
}

function cycleOf({ endUser }: StartCycle | StopCycle, { cycle }: Accepted): string {
  return JSON.stringify(cycleObject(endUser, cycle as Cycle));
}

/** Submits a command and sends the response. The command is canceled if the client disconnects before it is begun. */
function submit<Asked extends WriteCommand>(
  commit: GroupCommit,
  request: FastifyRequest,
  reply: FastifyReply,
  command: Asked,
  respond: (command: Asked, accepted: Accepted) => string,
): void {
  const answer = (result: CommitResult) => {
    if (result instanceof StoreFault) return sendProblem(reply, result.code);
    if (result instanceof NotBegun) return sendNotBegun(reply, result);
    if (result.replayOf !== undefined) reply.header('idempotent-replayed', 'true');
    if (result.refused === null) sendJson(reply, respond(command, result));
    else sendProblem(reply, result.refused, particularsOf(command.endUser, result), result.replayOf);
  };
  commit.submit(command, answer, connectionOf(request.raw.socket));
}

function particularsOf(endUserId: string, refusal: Refusal): Particulars {
  const detail = refusalDetail(refusal);
  switch (refusal.refused) {
    case 'InsufficientFunds': {
      const { requested, available } = refusal;
      return { detail, requested, available, shortfall: requested - available };
    }
    case 'BalanceTooLarge':
      return { detail, requested: refusal.requested, available: refusal.available };
    case 'CycleAlreadyActive':
      return { detail, cycle: cycleObject(endUserId, refusal.cycle) };
    default:
      return { detail };
  }
}
