// Helpers for the requests to the console and the replies to them.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorView, errorPage, type Viewer } from './layout.ts';

/** A field of the form; empty if it is missing or repeated. */
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

/** A form that is refused is shown again with status 200: browsers log pages with an error status as errors. */
export function sendPage(reply: FastifyReply, html: string, status = 200): FastifyReply {
  return reply.code(status).header('content-type', 'text/html; charset=utf-8').send(html);
}

export function sendError(
  reply: FastifyReply,
  status: number,
  error: ErrorView,
  viewer: Viewer | null = null,
): FastifyReply {
  return sendPage(reply, errorPage(error, viewer), status);
}

/** After a form, so that reloading does not send it again. */
export function redirectTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

/** The sentence for the result that a redirect named in the query. The text itself never comes from the URL. */
export function noticeOf(request: FastifyRequest, notices: Readonly<Record<string, string>>): string | null {
  const result = queryField(request, 'notice');
  return Object.hasOwn(notices, result) ? (notices[result] as string) : null;
}
