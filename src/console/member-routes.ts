// Who belongs to the account: for its owners. Whatever is changed is a member of the viewer's own account, or nothing.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { ROLES, type Role } from '../accounts/membership.ts';
import { type ConsoleContext, fieldOf, goTo, parameterOf } from './console-context.ts';
import type { MemberChange } from './identity/members.ts';
import type { Viewer } from './identity/sessions.ts';
import { errorPage } from './pages/error.ts';
import { membersPage, removeMemberPage } from './pages/members.ts';
import type { ConsoleRoutes } from './permissions.ts';
import { sendPage } from './routes/console-ports.ts';

const PATH = '/console/members';

/** Sentences for what was just done, by the word in the query: what a link says never comes from the link. */
const NOTICES = {
  removed: 'The member was removed, and all sessions of that person have ended.',
  role: 'The role was changed.',
  withdrawn: 'The links that nobody has used no longer work.',
} as const;

const BAD_ROLE = 'Role must be owner or member.';
const LAST_OWNER = 'An account needs an owner. Make somebody else one first.';

export function memberRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/members', (request, reply, viewer) =>
    showMembers(context, reply, viewer, { notice: noticeOf(request) }),
  );

  routes.on('POST /console/members/invite', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return showMembers(context, reply, viewer, { error: BAD_ROLE });
    const secret = await (await context.identity()).members.invite(viewer.account, role);
    const link = `${context.publicUrlFor(request)}/console/join/${secret}`;
    return showMembers(context, reply, viewer, { link });
  });

  routes.on('POST /console/members/withdraw-invitations', async (_request, reply, viewer) => {
    await (await context.identity()).members.withdrawInvitations(viewer.account);
    return goTo(reply, `${PATH}?done=withdrawn`);
  });

  routes.on('GET /console/members/:user/remove', async (request, reply, viewer) => {
    const list = await (await context.identity()).members.list(viewer.account);
    const member = list.find(({ userId }) => userId === parameterOf(request, 'user'));
    return member === undefined ? showUnknown(reply, viewer) : sendPage(reply, removeMemberPage(member, { viewer }));
  });

  routes.on('POST /console/members/:user/remove', async (request, reply, viewer) => {
    const { members } = await context.identity();
    const change = await members.remove(viewer.account, parameterOf(request, 'user'));
    return answerChange(context, reply, viewer, { change, done: 'removed' });
  });

  routes.on('POST /console/members/:user/role', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return showMembers(context, reply, viewer, { error: BAD_ROLE });
    const { members } = await context.identity();
    const change = await members.setRole(viewer.account, parameterOf(request, 'user'), role);
    return answerChange(context, reply, viewer, { change, done: 'role' });
  });
}

function roleOf(request: FastifyRequest): Role | null {
  const text = fieldOf(request, 'role');
  return ROLES.find((role) => role === text) ?? null;
}

function noticeOf({ query }: FastifyRequest): string | null {
  const { done } = query as Record<string, unknown>;
  return Object.entries(NOTICES).find(([word]) => word === done)?.[1] ?? null;
}

function answerChange(
  context: ConsoleContext,
  reply: FastifyReply,
  viewer: Viewer,
  { change, done }: { change: MemberChange; done: keyof typeof NOTICES },
): FastifyReply | Promise<FastifyReply> {
  if (change === 'done') return goTo(reply, `${PATH}?done=${done}`);
  if (change === 'not-found') return showUnknown(reply, viewer);
  return showMembers(context, reply, viewer, { error: LAST_OWNER });
}

interface Shown {
  readonly link?: string | null;
  readonly error?: string | null;
  readonly notice?: string | null;
}

async function showMembers(
  context: ConsoleContext,
  reply: FastifyReply,
  viewer: Viewer,
  { link = null, error = null, notice = null }: Shown,
): Promise<FastifyReply> {
  const { members } = await context.identity();
  const [list, pending] = await Promise.all([members.list(viewer.account), members.pendingInvitations(viewer.account)]);
  const view = { viewerId: viewer.userId, members: list, pending, link, error };
  return sendPage(reply, membersPage(view, { viewer, notice }));
}

function showUnknown(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const detail = 'There is no such member of this account.';
  return sendPage(reply, errorPage({ title: 'No such member', detail, requestId: null }, { viewer }), 404);
}
