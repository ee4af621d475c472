// What the pages of an account ask of the rest: who is looking, what a store knows of the account, the one way in for
// writes. The shapes are those of the store's port; whoever puts the console together hands them in.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GroupCommit } from '../../batching/group-commit.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Store } from '../../store/store.ts';

/** Whoever is signed in. The account comes from here alone, never from anything that a request says. */
export interface Viewer {
  readonly account: number;
  readonly accountName: string;
  readonly role: 'owner' | 'member';
  readonly userId: string;
  readonly email: string;
}

/** Routes by `METHOD /path`, each for a viewer who may do it. */
export interface RouteTable<Name extends string> {
  on(name: Name, handle: (request: FastifyRequest, reply: FastifyReply, viewer: Viewer) => unknown): void;
}

export interface ConsolePorts {
  readonly reads: Store['accountReads'];
  readonly cycles: Store['cycles'];
  readonly commit: Pick<GroupCommit, 'submit'>;
  readonly apiKeys: Pick<Store['apiKeys'], 'createFor' | 'list' | 'revoke'>;
  /** The e-mail addresses of the members of an account, by their ids. */
  emails(account: number): Promise<ReadonlyMap<string, string>>;
  /** Where the API answers, for lines that are ready to paste. */
  apiUrl(request: FastifyRequest): string;
  now(): Instant;
}

/** A field of a form; empty when it is not there, or there twice. */
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
 * A form that was refused is answered like any page, with 200: browsers log every page of another status as an error.
 */
export function sendPage(reply: FastifyReply, html: string, status = 200): FastifyReply {
  return reply
    .code(status)
    .header('content-type', 'text/html; charset=utf-8')
    .header('cache-control', 'no-store')
    .send(html);
}

/** After a form: what a reload asks for again is the page, not the change. */
export function goTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

export function isInvalidCursor(error: unknown): boolean {
  return error instanceof Error && error.name === 'InvalidCursor';
}
