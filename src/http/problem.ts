// Everything that can go wrong with a request, once: its name to program against, its status and its title. Whoever
// refuses names the problem, and the status comes from here. The documents are RFC 9457 problem details.

import type { FastifyReply } from 'fastify';
import type { Refusal } from '../ledger/command.ts';
import { type FaultCode, StoreFault } from '../store/store.ts';
import { cycleObject } from './objects.ts';

type RefusalCode = Refusal['refused'];

type RequestCode =
  | 'BadRequest'
  | 'ExpectationFailed'
  | 'Forbidden'
  | 'HeadersTooLarge'
  | 'InvalidField'
  | 'InvalidJson'
  | 'MethodNotAllowed'
  | 'NotFound'
  | 'PayloadTooLarge'
  | 'RequestTimeout'
  | 'TooManyRequests'
  | 'Unauthorized'
  | 'UnsupportedMediaType';

export type ProblemCode = RefusalCode | FaultCode | RequestCode;

interface ProblemKind {
  readonly status: number;
  readonly title: string;
}

export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  BadRequest: { status: 400, title: 'The request is not valid HTTP' },
  InvalidJson: { status: 400, title: 'The body is not valid JSON' },
  Unauthorized: { status: 401, title: 'A valid API key is needed' },
  InsufficientFunds: { status: 402, title: 'The end user has fewer credits than requested' },
  Forbidden: { status: 403, title: 'The API key may not do this' },
  CycleNotFound: { status: 404, title: 'The end user has no current cycle' },
  NotFound: { status: 404, title: 'There is nothing at this path' },
  MethodNotAllowed: { status: 405, title: 'The path does not take this method' },
  RequestTimeout: { status: 408, title: 'The request took too long to arrive' },
  CycleAlreadyActive: { status: 409, title: 'The end user already has an active cycle' },
  PayloadTooLarge: { status: 413, title: 'The body is too large' },
  UnsupportedMediaType: { status: 415, title: 'The body must be sent as application/json' },
  ExpectationFailed: { status: 417, title: 'The expectation in the headers cannot be met' },
  InvalidField: { status: 422, title: 'A field is missing, unknown or out of bounds' },
  BalanceTooLarge: { status: 422, title: 'The end user would hold more than 2^53−1 credits' },
  IdempotencyKeyReused: { status: 422, title: 'The idempotency key belongs to another request' },
  TooManyRequests: { status: 429, title: 'The API key has made too many requests' },
  HeadersTooLarge: { status: 431, title: 'The headers are too large' },
  Internal: { status: 500, title: 'Scrip failed, and has stopped writing if its ledger may be wrong' },
  Overloaded: { status: 503, title: 'Too much is waiting; nothing happened' },
  StoreUnavailable: { status: 503, title: 'The store cannot be reached; nothing happened' },
  OutcomeUnknown: { status: 503, title: 'It is not known whether this happened' },
};

export const PROBLEM_TYPE = 'application/problem+json';

/** Seconds after which a client that was turned away may try again. */
export const RETRY_AFTER_SECONDS = 1;

export interface FieldError {
  /** JSON Pointer to the field, empty for the body as a whole. */
  readonly path: string;
  readonly message: string;
}

/** JSON Pointer (RFC 6901) to a field of the body. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** An invalid request, thrown by whatever reads it and answered in one place. */
export class InvalidRequest extends Error {
  readonly code: RequestCode;
  readonly errors: readonly FieldError[];

  constructor(code: RequestCode, detail: string, errors: readonly FieldError[] = []) {
    super(detail);
    this.name = 'InvalidRequest';
    this.code = code;
    this.errors = errors;
  }
}

/** @param extras further members of the document; `detail` says what is particular to this occurrence */
export function problemDocument(
  code: ProblemCode,
  requestId: string,
  extras: { detail: string; [member: string]: unknown },
): string {
  return `${BEGINNINGS.get(code)}${JSON.stringify(requestId)},${JSON.stringify(extras).slice(1)}`;
}

/** How a document begins, up to the id of the request: the same every time. */
const BEGINNINGS: ReadonlyMap<ProblemCode, string> = new Map(
  (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => {
    const { status, title } = PROBLEMS[code];
    const text = JSON.stringify({ type: `/problems/${code}`, title, status, error: code, request_id: '' });
    return [code, text.slice(0, -'""}'.length)];
  }),
);

export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  extras: { detail: string; [member: string]: unknown },
): void {
  const { status } = PROBLEMS[code];
  // Not where it may have happened and there is no key: a client that tries again by itself could do it twice.
  const isSafe = code !== 'OutcomeUnknown' || reply.request.headers['idempotency-key'] !== undefined;
  if (status === 503 && isSafe) reply.header('retry-after', RETRY_AFTER_SECONDS);
  if (code === 'Unauthorized') reply.header('www-authenticate', 'Bearer realm="scrip"');
  sendDocument(reply, code, problemDocument(code, reply.request.id, extras));
}

function sendDocument(reply: FastifyReply, code: ProblemCode, document: string): void {
  reply.problem = code;
  reply.code(PROBLEMS[code].status).header('content-type', PROBLEM_TYPE).send(Buffer.from(document));
}

/** Of a request whose body was read to its end: the next one can follow on the connection. */
const READ_WHOLE: ReadonlySet<ProblemCode> = new Set(['InvalidJson', 'InvalidField']);

export function sendInvalid(reply: FastifyReply, { code, message, errors }: InvalidRequest): void {
  // Fastify closes after any error of a body parser, and the answers to what was pipelined behind would be lost.
  if (READ_WHOLE.has(code)) reply.removeHeader('connection');
  sendProblem(reply, code, errors.length > 0 ? { detail: message, errors } : { detail: message });
}

/** @param requestId of the request that was refused, which may be an earlier one with the same idempotency key */
export function sendRefusal(reply: FastifyReply, endUserId: string, requestId: string, refusal: Refusal): void {
  sendDocument(reply, refusal.refused, problemDocument(refusal.refused, requestId, particularsOf(endUserId, refusal)));
}

function particularsOf(endUserId: string, refusal: Refusal): { detail: string; [member: string]: unknown } {
  switch (refusal.refused) {
    case 'InsufficientFunds': {
      const { requested, available } = refusal;
      const detail = `${requested} credits were requested and ${available} are available.`;
      return { detail, requested, available, shortfall: requested - available };
    }
    case 'BalanceTooLarge': {
      const { requested, available } = refusal;
      const detail = `There is room for ${available} more credits, now and when the active cycle renews; ${requested} were requested.`;
      return { detail, requested, available };
    }
    case 'CycleAlreadyActive':
      return {
        detail: 'Nothing was changed. To replace the active cycle, send "on_active": "replace".',
        cycle: cycleObject(endUserId, refusal.cycle),
      };
    case 'CycleNotFound':
      return { detail: 'There is no cycle to stop.' };
    case 'IdempotencyKeyReused':
      return {
        detail: 'Nothing was changed. The key was sent before with other fields or to another path; use a new one.',
      };
  }
}

/** Also shown by the examples of the OpenAPI document. */
export const FAULT_DETAILS: Readonly<Record<FaultCode, string>> = {
  Overloaded: 'Nothing was changed. Try again in a moment.',
  StoreUnavailable: 'Nothing was changed. Try again in a moment.',
  OutcomeUnknown:
    'The store failed while it confirmed the write: it may have happened or not. Send it again with the same Idempotency-Key, or read the balance first.',
  Internal: 'This is not your fault. The operator finds the reason in the log, under the request_id.',
};

/** The client learns no more of a fault than it can act on. */
export function sendFault(reply: FastifyReply, { code }: Pick<StoreFault, 'code'>): void {
  sendProblem(reply, code, { detail: FAULT_DETAILS[code] });
}

/** For what is not a request's own fault, and nobody else has logged. */
export function sendFailure(reply: FastifyReply, error: unknown): void {
  // With its connection, as those do that a server which stops has waited for long enough: nobody has to look into it.
  const level = reply.request.raw.socket.destroyed ? 'info' : 'error';
  reply.log[level]({ err: error, request_id: reply.request.id }, 'a request failed');
  sendFault(reply, error instanceof StoreFault ? error : { code: 'Internal' });
}
