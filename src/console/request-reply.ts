// Helpers that read console requests and send replies.

import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Instant } from '../ledger/instant.ts';
import { type ErrorView, errorPage, themed, type Viewer } from './layout.ts';
import { withTestClock } from './pages/test-clock.ts';
import { readTheme } from './session-cookie.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The time of the test clock when the request arrived; absent if the ledger has none. */
    testTime?: Instant;
  }
}

/** Returns a field of the form; an empty string if the field is missing or repeated. */
export function formField({ body }: FastifyRequest, name: string): string {
  return textOf(body, name);
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

/**
 * A page that shows a form again with errors also has status 200, since browsers log an error for a page with an error
 * status.
 */
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

/** Sends a CSV download. @param lines read only as fast as the client receives them */
export function sendCsv(reply: FastifyReply, name: string, lines: AsyncIterable<string>): FastifyReply {
  return reply
    .header('content-type', 'text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(lines, { objectMode: false }));
}

/** Redirects with status 303. If the request sent a form, a reload of the new page does not send the form again. */
export function redirectTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

/** Returns the sentence of the notice that the query string names. The sentence itself never comes from the URL. */
export function noticeOf(request: FastifyRequest, notices: Readonly<Record<string, string>>): string | null {
  const result = queryField(request, 'notice');
  return Object.hasOwn(notices, result) ? (notices[result] as string) : null;
}
