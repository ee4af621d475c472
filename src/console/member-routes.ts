// Who belongs to the account: for its owners. Whatever is changed is a member of the viewer's own account, or nothing.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { ROLES, type Role } from '../accounts/membership.ts';
import { type ConsoleContext, fieldOf, goTo, parameterOf, show } from './console-context.ts';
import type { MemberChange } from './identity/members.ts';
import type { Viewer } from './identity/sessions.ts';
import { membersPage } from './pages/members.ts';
import type { ConsoleRoutes } from './permissions.ts';

const PATH = '/console/members';

const REFUSALS: Readonly<Record<Exclude<MemberChange, 'done'>, { status: number; text: string }>> = {
  'not-found': { status: 404, text: 'There is no such member of this account.' },
  'last-owner': { status: 200, text: 'An account needs an owner. Make somebody else one first.' },
};

export function memberRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  routes.on('GET /console/members', (_request, reply, viewer) => showMembers(context, reply, viewer));

  routes.on('POST /console/members/invite', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return showMembers(context, reply, viewer, { error: 'Role must be owner or member.' });
    const secret = await (await context.identity()).members.invite(viewer.account, role);
    const link = `${context.publicUrlFor(request)}/console/join/${secret}`;
    return showMembers(context, reply, viewer, { link });
  });

  routes.on('POST /console/members/withdraw-invitations', async (_request, reply, viewer) => {
    await (await context.identity()).members.withdrawInvitations(viewer.account);
    return goTo(reply, PATH);
  });

  routes.on('POST /console/members/:user/remove', async (request, reply, viewer) => {
    const { members } = await context.identity();
    const change = await members.remove(viewer.account, parameterOf(request, 'user'));
    return answerChange(context, reply, viewer, change);
  });

  routes.on('POST /console/members/:user/role', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return showMembers(context, reply, viewer, { error: 'Role must be owner or member.' });
    const { members } = await context.identity();
    const change = await members.setRole(viewer.account, parameterOf(request, 'user'), role);
    return answerChange(context, reply, viewer, change);
  });
}

function roleOf(request: FastifyRequest): Role | null {
  const text = fieldOf(request, 'role');
  return ROLES.find((role) => role === text) ?? null;
}

function answerChange(context: ConsoleContext, reply: FastifyReply, viewer: Viewer, change: MemberChange) {
  if (change === 'done') return goTo(reply, PATH);
  const { status, text } = REFUSALS[change];
  return showMembers(context, reply.code(status), viewer, { error: text });
}

async function showMembers(
  context: ConsoleContext,
  reply: FastifyReply,
  viewer: Viewer,
  { link = null, error = null }: { link?: string | null; error?: string | null } = {},
): Promise<FastifyReply> {
  const { members } = await context.identity();
  const [list, pending] = await Promise.all([members.list(viewer.account), members.pendingInvitations(viewer.account)]);
  const body = membersPage({ viewerId: viewer.userId, members: list, pending, link, error });
  return show(reply, { title: 'Members', viewer, current: 'members', body });
}
