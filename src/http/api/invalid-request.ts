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
    default:
      return { path: instancePath, message: message ?? 'is not valid' };
  }
}
