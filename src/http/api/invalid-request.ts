// Converts Fastify's errors about a request to problems: bodies that it cannot parse, and fields that a schema refuses.

import type { FastifyError, FastifyRequest } from 'fastify';
import { FIELD_ERRORS_MAX } from '../limits.ts';
import { type FieldError, InvalidRequest, invalidFields, PROBLEMS, pointerTo } from '../problems.ts';

/** @returns null if the error is not the client's */
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
  return invalidFields((error.validation ?? []).slice(0, FIELD_ERRORS_MAX).map(fieldError));
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
    case 'pattern':
    case 'format':
      return { path: instancePath, message: 'must be a UUID' };
    case 'const':
      return { path: instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` };
    default:
      return { path: instancePath, message: message ?? 'is not valid' };
  }
}
