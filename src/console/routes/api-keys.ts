// Routes that list, create and revoke API keys. The secret of a key appears only in the response to the form that
// created the key.

import { randomBytes, randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { apiKeySecret, KEY_NAME_CHARACTERS_MAX, SCOPES, SECRET_BYTES } from '../../accounts/api-key.ts';
import { isVisible } from '../../accounts/visible-text.ts';
import type { ConsoleContext } from '../console-context.ts';
import type { Viewer } from '../layout.ts';
import { apiKeysPage, type KeyView, keyCreatedPage, revokeKeyPage } from '../pages/api-keys.ts';
import type { FormState } from '../pages/form-field.ts';
import type { On, ViewerRequest } from '../permissions.ts';
import { formField, formHash, noticeOf, pathField, redirectTo, sendError, sendPage } from '../request-reply.ts';
import { actorNames, actorOf } from './actor-names.ts';
import { readLine } from './form-input.ts';

const LIST = '/console/api-keys';

/** The number of days, including today, for which the list shows the use of each key. */
const USED_DAYS = 30;

const NOTICES: Readonly<Record<string, string>> = {
  revoked: 'Key revoked. It stops working within a second.',
  created:
    "This key was already created, and Scrip shows a key only once. If you didn't copy the key, revoke it and create another.",
};

export function apiKeyRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/api-keys', (request, reply, viewer) =>
    sendList(context, reply, { viewer, notice: noticeOf(request, NOTICES), state: null }),
  );
  on('POST /console/api-keys', (request, reply, viewer) => createKey(context, { request, reply, viewer }));
  on('GET /console/api-keys/:id/revoke', async (request, reply, viewer) => {
    const key = await keyOf(context, request, viewer);
    if (key === null) return sendNotFound(reply, viewer);
    if (key.revokedAt !== null) return redirectTo(reply, LIST);
    return sendPage(reply, revokeKeyPage(key, context.options.now(), viewer));
  });
  on('POST /console/api-keys/:id/revoke', async (request, reply, viewer) => {
    const key = await keyOf(context, request, viewer);
    const owner = { account: viewer.account, by: actorOf(viewer) };
    if (key === null || !(await context.options.stores.keys.revoke(key.id, owner))) return sendNotFound(reply, viewer);
    return redirectTo(reply, `${LIST}?notice=revoked`);
  });
}

async function sendList(
  context: ConsoleContext,
  reply: FastifyReply,
  { viewer, notice, state }: { viewer: Viewer; notice: string | null; state: FormState | null },
): Promise<FastifyReply> {
  const keys = (await listedKeys(context, viewer.account)).toSorted(activeFirst);
  const view = { now: context.options.now(), keys, usedDays: USED_DAYS, state, idempotencyKey: randomUUID() };
  return sendPage(reply, apiKeysPage(view, { viewer, notice }));
}

async function listedKeys(context: ConsoleContext, account: number): Promise<readonly KeyView[]> {
  const { stores } = context.options;
  const [keys, { actors }, nameOf] = await Promise.all([
    stores.keys.list(account),
    stores.console.overview(account, { days: USED_DAYS }),
    actorNames(context, account),
  ]);
  const uses = new Map(actors.map((total) => [total.actor, total]));
  return keys.map((key) => ({
    ...key,
    name: key.name || 'Unnamed key',
    createdBy: nameOf(key.createdBy),
    revokedBy: key.revokedBy === null ? null : nameOf(key.revokedBy),
    use: uses.get(`key:${key.id}`) ?? { granted: 0n, spent: 0n, transactions: 0 },
  }));
}

function activeFirst(a: KeyView, b: KeyView): number {
  return Number(a.revokedAt !== null) - Number(b.revokedAt !== null) || b.createdAt - a.createdAt || b.id - a.id;
}

async function createKey(context: ConsoleContext, { request, reply, viewer }: ViewerRequest): Promise<FastifyReply> {
  const values = { name: formField(request, 'name'), scope: formField(request, 'scope') };
  const { name, scope, errors } = readKeyForm(values);
  if (name === null || scope === undefined)
    return sendList(context, reply, { viewer, notice: null, state: { values, errors } });
  const { keys } = context.options.stores;
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  const formSha256 = formHash(request, viewer);
  const key = await keys.createFor(viewer.account, { name, scope, secret, by: actorOf(viewer), formSha256 });
  // The form was already sent. Only the hash of the first secret is stored, so the secret cannot be shown again.
  if (key === null) return redirectTo(reply, `${LIST}?notice=created`);
  return sendPage(reply, keyCreatedPage({ name, scope, secret, apiUrl: context.publicUrlFor(request) }, viewer));
}

function readKeyForm(values: { readonly name: string; readonly scope: string }) {
  const { value, error } = readLine(values.name, KEY_NAME_CHARACTERS_MAX);
  const name = value !== null && isVisible(value) ? value : null;
  const scope = SCOPES.find((known) => known === values.scope);
  const nameError = error ?? (name === null ? 'Enter a name.' : null);
  return { name, scope, errors: { name: nameError, scope: scope === undefined ? 'Choose a scope.' : null } };
}

/** Returns null unless the key belongs to the account of the viewer. */
async function keyOf(context: ConsoleContext, request: FastifyRequest, viewer: Viewer): Promise<KeyView | null> {
  const id = pathField(request, 'id');
  return (await listedKeys(context, viewer.account)).find((one) => String(one.id) === id) ?? null;
}

function sendNotFound(reply: FastifyReply, viewer: Viewer): FastifyReply {
  return sendError(reply, 404, { title: 'API key not found', detail: 'This account has no such API key.' }, viewer);
}
