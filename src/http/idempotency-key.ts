// The `Idempotency-Key` header: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header

import type { FastifyRequest } from 'fastify';
import type { Idempotency } from '../ledger/command.ts';
import { InvalidRequest } from './problem.ts';

export const IDEMPOTENCY_KEY_MAX = 255;

/** Printable ASCII. The quotes that the draft wants around it belong to the key: a client sends the same ones again. */
const KEY = /^[\x20-\x7e]+$/;

/** Node joins two such headers with it, as if they were one. To look at them one by one is to copy all that there are. */
const JOINED_BY = ', ';

/**
 * Null when the request has none.
 *
 * @throws InvalidRequest
 */
export function idempotencyOf(request: FastifyRequest): Idempotency | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (key.includes(JOINED_BY) && request.raw.headersDistinct['idempotency-key']?.length !== 1)
    throw invalid('must be sent once');
  if (typeof key !== 'string' || key.length < 1 || key.length > IDEMPOTENCY_KEY_MAX || !KEY.test(key))
    throw invalid(`must have 1 to ${IDEMPOTENCY_KEY_MAX} printable ASCII characters`);
  return { key, requestId: request.id };
}

function invalid(message: string): InvalidRequest {
  const path = 'Idempotency-Key';
  return new InvalidRequest('InvalidField', `The header ${path} ${message}.`, [{ path, message }]);
}
