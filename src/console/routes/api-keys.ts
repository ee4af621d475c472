// Making keys and revoking them. The secret is in the answer to the request that made the key, and nowhere else: a
// second request with the same form is sent to the list.

import { randomBytes, randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { apiKeySecret, SCOPES, type Scope, SECRET_BYTES } from '../../accounts/api-key.ts';
import type { ListedKey } from '../../store/store.ts';
import { apiKeysPage, KEY_NAME_CHARACTERS_MAX, type KeyView } from '../pages/api-keys.ts';
import { errorPage } from '../pages/error.ts';
import type { Entered } from '../pages/form-field.ts';
import { keyCreatedPage } from '../pages/key-created.ts';
import { revokeKeyPage } from '../pages/revoke-key.ts';
import {
  type ConsolePorts,
  formField,
  goTo,
  pathField,
  queryField,
  type RouteTable,
  sendPage,
  type Viewer,
} from './console-ports.ts';
import { DoneOnce } from './done-once.ts';
import { readLine } from './form-input.ts';

type RouteName =
  | 'GET /console/api-keys'
  | 'POST /console/api-keys'
  | 'GET /console/api-keys/:id/revoke'
  | 'POST /console/api-keys/:id/revoke';

const LIST = '/console/api-keys';

/** Sentences for what was just done, by the word in the query: what a link says never comes from the link. */
const NOTICES: Readonly<Record<string, string>> = {
  revoked: 'The key was revoked. Requests with it are refused from now on.',
  created:
    'That key was made already, and its secret was shown once. If you have not got it, revoke the key and create another.',
};

export function apiKeyRoutes(routes: RouteTable<RouteName>, ports: ConsolePorts): void {
  const created = new DoneOnce<string>();
  routes.on('GET /console/api-keys', (request, reply, viewer) =>
    showList(ports, reply, { viewer, notice: NOTICES[queryField(request, 'done')] ?? null, refused: null }),
  );
  routes.on('POST /console/api-keys', (request, reply, viewer) => create(ports, created, { request, reply, viewer }));
  routes.on('GET /console/api-keys/:id/revoke', async (request, reply, viewer) => {
    const key = await keyOf(ports, request, viewer);
    if (key === null) return showUnknown(reply, viewer);
    if (key.revokedAt !== null) return goTo(reply, LIST);
    return sendPage(reply, revokeKeyPage(key, ports.now(), { viewer }));
  });
  routes.on('POST /console/api-keys/:id/revoke', async (request, reply, viewer) => {
    const key = await keyOf(ports, request, viewer);
    if (key === null || !(await ports.apiKeys.revoke(key.id, viewer.account))) return showUnknown(reply, viewer);
    return goTo(reply, `${LIST}?done=revoked`);
  });
}

async function showList(
  { apiKeys, now }: ConsolePorts,
  reply: FastifyReply,
  { viewer, notice, refused }: { viewer: Viewer; notice: string | null; refused: Entered | null },
): Promise<FastifyReply> {
  const keys = (await apiKeys.list(viewer.account)).map(viewOf).toSorted(workingFirst);
  const view = { now: now(), keys, mayChange: true, refused, once: randomUUID() };
  return sendPage(reply, apiKeysPage(view, { viewer, notice }));
}

function viewOf(key: ListedKey): KeyView {
  return { ...key, name: key.name || 'No name' };
}

function workingFirst(a: KeyView, b: KeyView): number {
  return Number(a.revokedAt !== null) - Number(b.revokedAt !== null) || b.createdAt - a.createdAt || b.id - a.id;
}

interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly viewer: Viewer;
}

async function create(ports: ConsolePorts, created: DoneOnce<string>, visit: Visit): Promise<FastifyReply> {
  const { request, reply, viewer } = visit;
  const values = { name: formField(request, 'name'), scope: formField(request, 'scope') };
  const name = readLine(values.name, KEY_NAME_CHARACTERS_MAX);
  const scope = SCOPES.find((known) => known === values.scope);
  const errors = {
    ...(name.error === null && name.value === null ? { name: 'Give the key a name.' } : {}),
    ...(name.error === null ? {} : { name: name.error }),
    ...(scope === undefined ? { scope: 'Choose what the key may do.' } : {}),
  };
  if (name.value === null || scope === undefined)
    return showList(ports, reply, { viewer, notice: null, refused: { values, errors } });
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  // What is remembered of it is which attempt it was, never the secret.
  const attempt = randomUUID();
  const made = await created.do(viewer.userId, formField(request, 'once'), async () => {
    await store(ports, viewer, { name: name.value as string, scope, secret });
    return attempt;
  });
  if (made !== attempt) return goTo(reply, `${LIST}?done=created`);
  return sendPage(
    reply,
    keyCreatedPage({ name: name.value, scope, secret, apiUrl: ports.apiUrl(request) }, { viewer }),
  );
}

async function store(
  { apiKeys }: ConsolePorts,
  { account }: Viewer,
  key: { name: string; scope: Scope; secret: string },
): Promise<void> {
  if ((await apiKeys.createFor(account, key)) === null) throw new Error('the account of a viewer is there');
}

/** Null for what is no key of this account, whoever else's it is. */
async function keyOf({ apiKeys }: ConsolePorts, request: FastifyRequest, viewer: Viewer): Promise<KeyView | null> {
  const id = pathField(request, 'id');
  const key = (await apiKeys.list(viewer.account)).find((one) => String(one.id) === id);
  return key === undefined ? null : viewOf(key);
}

function showUnknown(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const view = { title: 'No such key', detail: 'This account has no such API key.', requestId: null };
  return sendPage(reply, errorPage(view, { viewer }), 404);
}
