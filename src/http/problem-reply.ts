// Sends problem documents (RFC 9457) with the texts of `problems.ts`.

import type { FastifyReply } from 'fastify';
import { NotBegun } from '../batching/group-commit.ts';
import { StoreFault } from '../store/store-fault.ts';
import { errorCodeOf, InvalidRequest, type PlainProblem, PROBLEMS, type ProblemCode } from './problems.ts';
import { arrivalOf } from './request-id.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** Seconds after which a client may retry a request that got 503. */
export const RETRY_AFTER_SECONDS = 1;

/** The status that nginx uses for a disconnected client. It appears only in metrics and logs. */
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
/** @param requestId the id of the first request, if its response is replayed */
export function sendProblem(reply: FastifyReply, code: ProblemCode, particulars: Particulars, requestId?: string): void;
export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  particulars = { detail: PROBLEMS[code as PlainProblem].detail },
  requestId = reply.request.id,
): void {
  const { status } = PROBLEMS[code];
  // A write without a key may have been applied, and an automatic retry could apply it again.
  const isSafe = code !== 'OutcomeUnknown' || reply.request.headers['idempotency-key'] !== undefined;
  if (status === 503 && isSafe) reply.header('retry-after', RETRY_AFTER_SECONDS);
  if (code === 'Unauthorized') reply.header('www-authenticate', 'Bearer realm="scrip"');
  reply.problem = code;
  reply.code(status).header('content-type', PROBLEM_TYPE);
  reply.send(Buffer.from(problemDocument(code, requestId, particulars)));
}

/** Problems after which the connection remains usable, since the whole body was read. */
const READ_WHOLE: ReadonlySet<ProblemCode> = new Set(['InvalidJson', 'InvalidField']);

export function sendInvalid(reply: FastifyReply, { code, errorCode, message, errors }: InvalidRequest): void {
  // Fastify closes the connection after any error of a body parser, and pipelined requests would get no response.
  if (READ_WHOLE.has(code)) reply.removeHeader('connection');
  const named = errorCode === null ? {} : { error_code: errorCode };
  sendProblem(reply, code, { detail: message, ...named, ...(errors.length > 0 ? { errors } : {}) });
}

export function sendNotBegun(reply: FastifyReply, { code }: NotBegun): void {
  if (code === 'Canceled') reply.code(CANCELED_STATUS).send();
  else sendProblem(reply, code);
}

/** Logs the error if Scrip or its database failed. */
export function sendError(reply: FastifyReply, error: unknown): void {
  if (error instanceof InvalidRequest) {
    sendInvalid(reply, error);
  } else if (error instanceof NotBegun) {
    sendNotBegun(reply, error);
  } else {
    // A closed connection is not an error, for example at the end of a shutdown.
    const level = reply.request.raw.socket.destroyed ? 'info' : 'error';
    const code = error instanceof StoreFault ? error.code : 'Internal';
    // While the database is unavailable, thousands of requests fail for the same reason; a stack trace adds nothing.
    const details = code === 'Internal' ? { err: error } : { fault: code, reason: (error as StoreFault).message };
    reply.log[level]({ ...details, request_id: reply.request.id }, 'a request failed');
    sendProblem(reply, code);
  }
}
