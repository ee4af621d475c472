// Answers that are problems: RFC 9457 problem details, with the texts of `problems.ts`.

import type { FastifyReply } from 'fastify';
import { NotBegun } from '../batching/group-commit.ts';
import { StoreFault } from '../store/store-fault.ts';
import { InvalidRequest, type PlainProblem, PROBLEMS, type ProblemCode } from './problems.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** Seconds after which a client may send a refused request again. */
export const RETRY_AFTER_SECONDS = 1;

/** The status that nginx logs for a client which disconnected. It reaches no client; metrics and the request log show it. */
const CANCELED_STATUS = 499;

/** Further members of a document, beside those that all problems have. */
export interface Particulars {
  readonly detail: string;
  readonly [member: string]: unknown;
}

export function problemDocument(code: ProblemCode, requestId: string, particulars: Particulars): string {
  const { status, title } = PROBLEMS[code];
  const type = `/problems/${code}`;
  return JSON.stringify({ type, title, status, error: code, request_id: requestId, ...particulars });
}

export function sendProblem(reply: FastifyReply, code: PlainProblem): void;
/** @param requestId that of an earlier request with the same idempotency key, if this is its answer */
export function sendProblem(reply: FastifyReply, code: ProblemCode, particulars: Particulars, requestId?: string): void;
export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  particulars = { detail: PROBLEMS[code as PlainProblem].detail },
  requestId = reply.request.id,
): void {
  const { status } = PROBLEMS[code];
  // Not if the write may have been applied and has no key: a client that retries by itself could apply it twice.
  const isSafe = code !== 'OutcomeUnknown' || reply.request.headers['idempotency-key'] !== undefined;
  if (status === 503 && isSafe) reply.header('retry-after', RETRY_AFTER_SECONDS);
  if (code === 'Unauthorized') reply.header('www-authenticate', 'Bearer realm="scrip"');
  reply.problem = code;
  reply.code(status).header('content-type', PROBLEM_TYPE);
  reply.send(Buffer.from(problemDocument(code, requestId, particulars)));
}

/** Problems of a request whose body was read to its end: the next one can follow on the connection. */
const READ_WHOLE: ReadonlySet<ProblemCode> = new Set(['InvalidJson', 'InvalidField']);

export function sendInvalid(reply: FastifyReply, { code, message, errors }: InvalidRequest): void {
  // Fastify closes the connection after any error of a body parser, and pipelined requests would get no answer.
  if (READ_WHOLE.has(code)) reply.removeHeader('connection');
  sendProblem(reply, code, errors.length > 0 ? { detail: message, errors } : { detail: message });
}

export function sendNotBegun(reply: FastifyReply, { code }: NotBegun): void {
  if (code === 'Canceled') reply.code(CANCELED_STATUS).send();
  else sendProblem(reply, code);
}

/** Answers what a call has thrown, and logs it if it is a failure of Scrip. */
export function sendError(reply: FastifyReply, error: unknown): void {
  if (error instanceof InvalidRequest) {
    sendInvalid(reply, error);
  } else if (error instanceof NotBegun) {
    sendNotBegun(reply, error);
  } else {
    // A connection that is cut off, for example by a stop after its deadline, is not an error.
    const level = reply.request.raw.socket.destroyed ? 'info' : 'error';
    reply.log[level]({ err: error, request_id: reply.request.id }, 'a request failed');
    sendProblem(reply, error instanceof StoreFault ? error.code : 'Internal');
  }
}
