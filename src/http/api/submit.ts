// Submits the command of a request, and sends the outcome as the response.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Canceled, type CommitResult, type GroupCommit } from '../../batching/group-commit.ts';
import type { Accepted, Idempotency, Refusal, StopCycle, WriteCommand } from '../../ledger/command.ts';
import { isNote, NOTE_LENGTH_MAX, type Note } from '../../ledger/posting.ts';
import { type FaultCode, StoreFault } from '../../store/store-fault.ts';
import { endUserOf } from '../admission/admit.ts';
import { connectionOf } from '../admission/connections.ts';
import { IDEMPOTENCY_KEY_MAX } from '../limits.ts';
import { type Particulars, sendCanceled, sendProblem } from '../problem-reply.ts';
import { type InvalidRequest, invalidField, refusalDetail } from '../problems.ts';
import { cycleObject, sendJson } from './replies.ts';

interface WriteBody {
  readonly end_user_id: string;
  readonly note?: string | null;
}

export function issuedBy(request: FastifyRequest<{ Body: WriteBody }>): Omit<StopCycle, 'kind'> {
  const { account, endUser } = endUserOf(request, request.body);
  const idempotency = idempotencyOf(request);
  return { account, endUser, actor: request.caller.actor, idempotency, note: noteOf(request.body) };
}

function noteOf({ note = null }: WriteBody): Note | null {
  if (note !== null && !isNote(note)) throw invalidNote();
  return note;
}

/** Returns the error for forbidden characters in a note or in the `note` filter. The schema limits the length. */
export function invalidNote(): InvalidRequest {
  return invalidField('/note', `must have 1 to ${NOTE_LENGTH_MAX} characters, without U+0000 or unpaired surrogates`);
}

/** Printable ASCII. In the IETF draft for this header, the key is in quotes. Scrip treats quotes as part of the key. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]+$/;

/**
 * Node.js joins two `Idempotency-Key` headers with this separator. Reading `headersDistinct` copies all headers, so
 * Scrip reads this property only if the separator occurs.
 */
const JOINED_BY = ', ';

/**
 * Reads the `Idempotency-Key` header: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header
 *
 * @returns null if the request has no key
 * @throws InvalidRequest
 */
function idempotencyOf(request: FastifyRequest): Idempotency | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (key.includes(JOINED_BY) && request.raw.headersDistinct['idempotency-key']?.length !== 1)
    throw invalidKey('occurs more than once in the request');
  if (typeof key !== 'string' || key.length < 1 || key.length > IDEMPOTENCY_KEY_MAX || !IDEMPOTENCY_KEY.test(key))
    throw invalidKey(`must have 1 to ${IDEMPOTENCY_KEY_MAX} printable ASCII characters`);
  return { key, requestId: request.id };
}

function invalidKey(message: string): InvalidRequest {
  return invalidField('Idempotency-Key', message);
}

/** Cancels the command if the client disconnects before Scrip begins to process the command. */
export function submit<Asked extends WriteCommand>(
  commit: GroupCommit,
  request: FastifyRequest,
  reply: FastifyReply,
  command: Asked,
  respond: (command: Asked, accepted: Accepted) => string,
): void {
  const answer = (result: CommitResult) => {
    if (result instanceof StoreFault) return sendFault(reply, result.code);
    if (result instanceof Canceled) return sendCanceled(reply);
    if (result.replayOf !== undefined) reply.header('idempotent-replayed', 'true');
    if (result.refused !== null)
      return sendProblem(reply, result.refused, particularsOf(command, result), result.replayOf);
    if (result.transactionId !== null) reply.header('transaction-id', result.transactionId);
    sendJson(reply, respond(command, result));
  };
  commit.submit(command, answer, connectionOf(request.raw.socket));
}

/** Logs the request ID of an `Internal` fault, so that operators can find the request. service.ts logs the cause. */
function sendFault(reply: FastifyReply, code: FaultCode): void {
  if (code === 'Internal') reply.log.error({ fault: code, request_id: reply.request.id }, 'a write failed');
  sendProblem(reply, code);
}

export function particularsOf({ kind, endUser }: WriteCommand, refusal: Refusal): Particulars {
  const detail = refusalDetail(refusal, kind);
  switch (refusal.refused) {
    case 'InsufficientFunds': {
      const { requested, available } = refusal;
      return { detail, requested, available, shortfall: requested - available };
    }
    case 'BalanceTooLarge':
      return { detail, requested: refusal.requested, available: refusal.available };
    case 'CycleAlreadyActive':
      return { detail, cycle: cycleObject(endUser, refusal.cycle) };
    case 'RefundTooLarge': {
      const { requested, refundable } = refusal;
      return { detail, ...(requested === null ? {} : { requested }), refundable };
    }
    default:
      return { detail };
  }
}
