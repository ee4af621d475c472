// The page for a request that failed, or that the console could not read.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { formText } from '../http/problems.ts';
import type { ConsoleContext } from './console-context.ts';
import { type SafeForm, USER_FIELD } from './layout.ts';
import { formField, formFields, sendError } from './request-reply.ts';

export async function answerError(
  context: ConsoleContext,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const status = error.statusCode ?? 500;
  const viewer = await context.viewerOf(request).catch(() => null);
  if (status >= 400 && status < 500) {
    const detail = `Scrip could not read this request: ${error.message}.`;
    return sendError(reply, status, { title: 'Invalid request', detail }, viewer);
  }
  reply.header('retry-after', 1);
  const title = 'Temporarily unavailable';
  if (error.name === 'PasswordHasherBusy')
    return sendError(reply, 503, { title, detail: 'The server is busy. Try again in a moment.' }, viewer);
  if (error.name === 'UnusableSecret' || error.name === 'CannotOpen') {
    request.log.error({ err: error, request_id: request.id }, 'the key that encrypts webhook secrets cannot be used');
    const detail =
      'Nothing was changed, because the key that encrypts webhook secrets cannot be used. Ask your administrator to check the setting WEBHOOK_KEY and the log.';
    return sendError(reply, 503, { title, detail, requestId: request.id }, viewer);
  }
  // The log entry and the text of the page must not contain user input.
  request.log.error({ err: error, request_id: request.id }, 'a console request failed');
  const form = safeFormOf(request);
  const detail = form === null ? failureText(request.method === 'POST' && viewer !== null) : formText('OutcomeUnknown');
  return sendError(reply, 503, { title, detail, form, requestId: request.id }, viewer);
}

function failureText(isChange: boolean): string {
  const outcome = isChange ? ' Any change that you made may or may not have been saved.' : '';
  return `Something went wrong in the console.${outcome} Try again in a moment. If the problem continues, give your administrator the request ID.`;
}

/**
 * Returns the form that the user has sent, if it has an idempotency key. The page of the form often cannot be shown
 * again, because it would have to read what the form might have changed.
 */
function safeFormOf(request: FastifyRequest): SafeForm | null {
  if (formField(request, 'idempotency_key') === '') return null;
  // Every page adds this field to its forms.
  const names = Object.keys(request.body as object).filter((name) => name !== USER_FIELD);
  return {
    action: request.url,
    fields: names.flatMap((name) => formFields(request, name).map((value) => [name, value])),
  };
}
