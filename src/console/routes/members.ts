// Routes that let owners manage the members and invitations of their account.

import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ROLES, type Role } from '../../accounts/membership.ts';
import type { ConsoleContext } from '../console-context.ts';
import type { MemberChange } from '../identity/members.ts';
import type { Viewer } from '../layout.ts';
import { membersPage, removeMemberPage } from '../pages/members.ts';
import { type On, refuseNonOwner } from '../permissions.ts';
import { formField, formHash, noticeOf, pathField, redirectTo, sendError, sendPage } from '../request-reply.ts';

const PATH = '/console/members';

const NOTICES = {
  removed: 'Member removed and signed out. Pending invitations that this person created no longer work.',
  owner: 'Role changed.',
  member: 'Role changed. Pending invitations that this person created no longer work.',
  withdrawn: 'Invitation withdrawn. Its link no longer works.',
  invited:
    "This invitation link was already created, and Scrip shows a link only once. If you didn't copy the link, withdraw the invitation and create another.",
  'all-withdrawn': 'Pending invitations withdrawn. Their links no longer work.',
} as const;

const ROLE_ERROR = 'Choose a role: owner or member.';
const NOT_PENDING_ERROR =
  'Nothing was changed, because the invitation has already been used or withdrawn. Check the list of members.';
const LAST_OWNER_ERROR = 'An account must have at least one owner. Make someone else an owner first.';

export function memberRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/members', (request, reply, viewer) =>
    sendMembers(context, reply, viewer, { notice: noticeOf(request, NOTICES) }),
  );

  on('POST /console/members/invite', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return sendMembers(context, reply, viewer, { error: ROLE_ERROR });
    const { members } = await context.identity();
    const { account, userId } = viewer;
    const created = await members.invite({ account, role, inviterId: userId, formSha256: formHash(request, viewer) });
    if (created === 'not-owner') return refuseNonOwner(reply, viewer);
    if (created === 'already-created') return redirectTo(reply, `${PATH}?notice=invited`);
    const newInvitationUrl = `${context.publicUrlFor(request)}/console/join/${created.token}`;
    return sendMembers(context, reply, viewer, { newInvitationUrl });
  });

  on('POST /console/members/withdraw-invitations', async (request, reply, viewer) => {
    const id = formField(request, 'invitation') || null;
    const { members } = await context.identity();
    const withdrawn = await members.withdrawInvitations(viewer.account, id);
    if (id !== null && withdrawn === 0) return sendMembers(context, reply, viewer, { error: NOT_PENDING_ERROR });
    return redirectTo(reply, `${PATH}?notice=${id === null ? 'all-withdrawn' : 'withdrawn'}`);
  });

  on('GET /console/members/:user/remove', async (request, reply, viewer) => {
    const list = await (await context.identity()).members.list(viewer.account);
    const member = list.find(({ userId }) => userId === pathField(request, 'user'));
    return member === undefined ? sendNotFound(reply, viewer) : sendPage(reply, removeMemberPage(member, viewer));
  });

  on('POST /console/members/:user/remove', async (request, reply, viewer) => {
    const { members } = await context.identity();
    const userId = pathField(request, 'user');
    const change = await members.change(viewer.account, userId, null, viewer.userId);
    const path = userId === viewer.userId ? '/console/sign-in?notice=left' : `${PATH}?notice=removed`;
    return sendChange(context, reply, viewer, { change, path });
  });

  on('POST /console/members/:user/role', async (request, reply, viewer) => {
    const role = roleOf(request);
    if (role === null) return sendMembers(context, reply, viewer, { error: ROLE_ERROR });
    const { members } = await context.identity();
    const userId = pathField(request, 'user');
    const change = await members.change(viewer.account, userId, role, viewer.userId);
    // Owners who have made themselves members can no longer see the members.
    const isOwnDemotion = userId === viewer.userId && role === 'member';
    const path = isOwnDemotion ? '/console/account?notice=role' : `${PATH}?notice=${role}`;
    return sendChange(context, reply, viewer, { change, path });
  });
}

function roleOf(request: FastifyRequest): Role | null {
  const text = formField(request, 'role');
  return ROLES.find((role) => role === text) ?? null;
}

/** @param result `path` is where to go after the change */
function sendChange(
  context: ConsoleContext,
  reply: FastifyReply,
  viewer: Viewer,
  { change, path }: { change: MemberChange; path: string },
): FastifyReply | Promise<FastifyReply> {
  if (change === 'done') return redirectTo(reply, path);
  if (change === 'not-owner') return refuseNonOwner(reply, viewer);
  if (change === 'not-found') return sendNotFound(reply, viewer);
  return sendMembers(context, reply, viewer, { error: LAST_OWNER_ERROR });
}

interface MembersResult {
  readonly newInvitationUrl?: string | null;
  readonly error?: string | null;
  readonly notice?: string | null;
}

async function sendMembers(
  context: ConsoleContext,
  reply: FastifyReply,
  viewer: Viewer,
  { newInvitationUrl = null, error = null, notice = null }: MembersResult,
): Promise<FastifyReply> {
  const { members } = await context.identity();
  const [list, pendingInvitations] = await Promise.all([
    members.list(viewer.account),
    members.pendingInvitations(viewer.account),
  ]);
  const view = {
    viewerId: viewer.userId,
    members: list,
    pendingInvitations,
    newInvitationUrl,
    error,
    idempotencyKey: randomUUID(),
  };
  return sendPage(reply, membersPage(view, { viewer, notice }));
}

function sendNotFound(reply: FastifyReply, viewer: Viewer): FastifyReply {
  const error = { title: 'Member not found', detail: 'This account has no such member.' };
  return sendError(reply, 404, error, viewer);
}
