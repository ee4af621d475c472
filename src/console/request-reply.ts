// Helpers that read console requests and send replies.

import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Instant } from '../ledger/instant.ts';
import { sha256Of } from './identity/secret-token.ts';
import { type ErrorView, errorPage, themed, type Viewer } from './layout.ts';
import { withTestClock } from './pages/test-clock.ts';
import { readTheme } from './session-cookie.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The time of the test clock when the request arrived. */
    testTime?: Instant;
  }
}

/** Returns an empty string if the field is missing or repeated. */
export function formField({ body }: FastifyRequest, name: string): string {
  return textOf(body, name);
}

/** Returns all values of a field that the form can repeat, such as a group of checkboxes. */
export function formFields({ body }: FastifyRequest, name: string): readonly string[] {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  const values = Array.isArray(value) ? value : [value];
  return values.filter((one) => typeof one === 'string');
}

/**
 * Identifies the form that the viewer has sent, by the idempotency key in the form. If a form is sent twice, for
 * example by a double click, both requests have the same hash.
 *
 * @returns SHA-256 in hexadecimal; null if the form has no idempotency key
 */
export function formHash(request: FastifyRequest, { userId }: Viewer): string | null {
  const key = formField(request, 'idempotency_key');
  return key === '' ? null : sha256Of(`${userId} ${request.url} ${key}`);
}

export function queryField({ query }: FastifyRequest, name: string): string {
  return textOf(query, name);
}

export function pathField({ params }: FastifyRequest, name: string): string {
  return textOf(params, name);
}

function textOf(fields: unknown, name: string): string {
  const value = (fields as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' ? value : '';
}

/** The status is 200 even for a form with errors, because browsers log every 4xx response as an error. */
export function sendPage(reply: FastifyReply, html: string, status = 200): FastifyReply {
  const { headers, testTime, url } = reply.request;
  const page = withTestClock(themed(html, readTheme(headers.cookie)), testTime ?? null, url);
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(page);
}

export function sendError(
  reply: FastifyReply,
  status: number,
  error: ErrorView,
  viewer: Viewer | null = null,
): FastifyReply {
  return sendPage(reply, errorPage(error, viewer), status);
}

/** Sends `lines` as a CSV download. The lines are read only as fast as the client receives them. */
export function sendCsv(reply: FastifyReply, name: string, lines: AsyncIterable<string>): FastifyReply {
  return reply
    .header('content-type', 'text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(lines, { objectMode: false }));
}

/** Redirects with status 303, so that reloading the new page does not submit the form again. */
export function redirectTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

/** The query string contains only the name of a notice, so a link cannot make the console show any other text. */
export function noticeOf(request: FastifyRequest, notices: Readonly<Record<string, string>>): string | null {
  const result = queryField(request, 'notice');
  return Object.hasOwn(notices, result) ? (notices[result] as string) : null;
}
