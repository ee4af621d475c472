// Sends errors as problem documents (RFC 9457). The texts of the documents are in `problems.ts`.

import type { FastifyReply } from 'fastify';
import { Canceled } from '../batching/group-commit.ts';
import { StoreFault } from '../store/store-fault.ts';
import { errorCodeOf, InvalidRequest, type PlainProblem, PROBLEMS, type ProblemCode } from './problems.ts';
import { arrivalOf } from './request-id.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** The value of the `Retry-After` header in responses with status 503. */
const RETRY_AFTER_SECONDS = 1;

/**
 * The status that nginx logs for a request whose client has disconnected. Only metrics and logs contain this status.
 */
const CANCELED_STATUS = 499;

export interface Particulars {
  readonly detail: string;
  readonly [member: string]: unknown;
}

export function problemDocument(code: ProblemCode, requestId: string, particulars: Particulars): string {
  const { status, title } = PROBLEMS[code];
  const type = `/problems/${code}`;
  const names = { error: code, error_code: errorCodeOf(code) };
  const timestamp = new Date(arrivalOf(requestId));
  return JSON.stringify({
    ...{ type, title, status, ...names, request_id: requestId, timestamp, message: particulars.detail },
    ...particulars,
  });
}

export function sendProblem(reply: FastifyReply, code: PlainProblem): void;
/** @param requestId in a replay, the ID of the first request; by default, the ID of the current request */
export function sendProblem(reply: FastifyReply, code: ProblemCode, particulars: Particulars, requestId?: string): void;
export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  particulars = { detail: PROBLEMS[code as PlainProblem].detail },
  requestId = reply.request.id,
): void {
  const { status } = PROBLEMS[code];
  // After `OutcomeUnknown`, an automatic retry without an idempotency key could apply the write twice.
  const isSafe = code !== 'OutcomeUnknown' || reply.request.headers['idempotency-key'] !== undefined;
  if (status === 503 && isSafe) reply.header('retry-after', RETRY_AFTER_SECONDS);
  if (code === 'Unauthorized') reply.header('www-authenticate', 'Bearer realm="scrip"');
  reply.problem = code;
  reply.code(status).header('content-type', PROBLEM_TYPE);
  reply.send(Buffer.from(problemDocument(code, requestId, particulars)));
}

/** Problems after which the connection remains usable, because the whole body was read. */
const READ_WHOLE: ReadonlySet<ProblemCode> = new Set(['InvalidJson', 'InvalidField']);

export function sendInvalid(reply: FastifyReply, { code, errorCode, message, errors }: InvalidRequest): void {
  // After an error in a body parser, Fastify would close the connection, and pipelined requests would get no response.
  if (READ_WHOLE.has(code)) reply.removeHeader('connection');
  const named = errorCode === null ? {} : { error_code: errorCode };
  sendProblem(reply, code, { detail: message, ...named, ...(errors.length > 0 ? { errors } : {}) });
}

export function sendCanceled(reply: FastifyReply): void {
  reply.code(CANCELED_STATUS).send();
}

/** Sends the response for an error. Logs the error only if Scrip or its database caused it. */
export function sendError(reply: FastifyReply, error: unknown): void {
  if (error instanceof InvalidRequest) {
    sendInvalid(reply, error);
  } else if (error instanceof Canceled) {
    sendCanceled(reply);
  } else {
    // If the connection is already closed, for example by a shutdown, a failed request is normal.
    const level = reply.request.raw.socket.destroyed ? 'info' : 'error';
    const code = error instanceof StoreFault ? error.code : 'Internal';
    // While the database is unavailable, thousands of requests fail for the same reason, so the log omits the stack
    // traces.
    const details = code === 'Internal' ? { err: error } : { fault: code, reason: (error as StoreFault).message };
    reply.log[level]({ ...details, request_id: reply.request.id }, 'a request failed');
    sendProblem(reply, code);
  }
}
