// Converts Fastify's errors about invalid requests to API problems.

import type { FastifyError, FastifyRequest } from 'fastify';
import { AMOUNT_NEGATIVE, type FieldError, InvalidRequest, invalidFields, PROBLEMS, pointerTo } from '../problems.ts';

/** @returns null if the client did not cause the error */
export function invalidRequestOf(error: FastifyError, request: FastifyRequest): InvalidRequest | null {
  if (error.validation) return invalidAgainstSchema(error, request);
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new InvalidRequest('PayloadTooLarge', PROBLEMS.PayloadTooLarge.detail);
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new InvalidRequest('UnsupportedMediaType', PROBLEMS.UnsupportedMediaType.detail);
  const status = error.statusCode ?? 500;
  return status >= 400 && status < 500 ? new InvalidRequest('BadRequest', error.message) : null;
}

function invalidAgainstSchema(error: FastifyError, request: FastifyRequest): InvalidRequest {
  if (error.validationContext === 'body' && request.body === undefined)
    return new InvalidRequest('InvalidJson', PROBLEMS.InvalidJson.detail('it is empty'));
  const refused = error.validation ?? [];
  const isNegative = refused.some(({ instancePath, keyword }) => instancePath === '/amount' && keyword === 'minimum');
  return invalidFields(refused.map(fieldError), isNegative ? AMOUNT_NEGATIVE : null);
}

function fieldError({
  keyword,
  instancePath,
  params,
  message,
}: NonNullable<FastifyError['validation']>[number]): FieldError {
  switch (keyword) {
    case 'required':
      return { path: instancePath + pointerTo(String(params.missingProperty)), message: 'is required' };
    case 'additionalProperties':
      return { path: instancePath + pointerTo(String(params.additionalProperty)), message: 'is not a known field' };
    case 'format':
      return { path: instancePath, message: 'must be a UUID' };
    case 'enum':
      return { path: instancePath, message: `must be one of ${(params.allowedValues as unknown[]).join(', ')}` };
    case 'type':
      return { path: instancePath, message: `must be ${typeText(params.type)}` };
    case 'minimum':
      return { path: instancePath, message: `must be at least ${params.limit}` };
    case 'maximum':
      return { path: instancePath, message: `must be at most ${params.limit}` };
    case 'minLength':
      return { path: instancePath, message: `must have at least ${charactersText(params.limit)}` };
    case 'maxLength':
      return { path: instancePath, message: `must have at most ${charactersText(params.limit)}` };
    default:
      return { path: instancePath, message: message ?? 'is not valid' };
  }
}

const TYPE_TEXTS: Readonly<Record<string, string>> = {
  object: 'a JSON object',
  string: 'a string',
  integer: 'a whole number',
  boolean: 'true or false',
};

/** @param type one type or an array of types, as in the schema */
function typeText(type: unknown): string {
  return [type]
    .flat()
    .map((one) => TYPE_TEXTS[String(one)] ?? String(one))
    .join(' or ');
}

function charactersText(count: unknown): string {
  return `${count} ${count === 1 ? 'character' : 'characters'}`;
}
