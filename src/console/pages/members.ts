// The page on which owners manage members and invitations.

import { html } from 'ghtml';
import { day, moment } from '../figures.ts';
import type { Member, PendingInvitation } from '../identity/members.ts';
import { type Page, type PageContext, page } from '../layout.ts';
import { copyBox } from './copy-box.ts';
import { idempotencyKeyInput } from './form-field.ts';
import { table } from './lists.ts';

export interface MembersView {
  readonly viewerId: string;
  /** In the order in which the members joined. */
  readonly members: readonly Member[];
  readonly pendingInvitations: readonly PendingInvitation[];
  /** The link of a new invitation, which is shown only once; null if no invitation was created. */
  readonly newInvitationUrl: string | null;
  readonly error: string | null;
  readonly idempotencyKey: string;
}

export function membersPage(view: MembersView, context: PageContext): string {
  const { viewerId, members, pendingInvitations, newInvitationUrl, error, idempotencyKey } = view;
  const rows = members.map((member, index) => memberRow(member, `member-${index}`, member.userId === viewerId));
  const body = html`<p class="muted lede">Members can manage API keys, webhooks, end users and credits. Owners can also invite people, change roles and remove members.</p>
!${error === null ? '' : html`<p class="error" role="alert">${error}</p>`}
!${newInvitationUrl === null ? '' : newInvitation(newInvitationUrl)}
<section class="card">
<h2>Current members</h2>
!${table({ label: 'Members', columns: [['Email'], ['Role'], ['Joined (UTC)'], ['Actions', 'end']], rows })}
</section>
<section class="card">
<h2>Invite someone</h2>
<form class="form pair" method="post" action="/console/members/invite">
!${idempotencyKeyInput(idempotencyKey)}
<div class="field"><label for="role">Role</label>
<select class="input" id="role" name="role" aria-describedby="role-hint"><option value="member">Member</option><option value="owner">Owner</option></select>
<p class="hint" id="role-hint">You get a link to share. It works once and expires after 7 days.</p></div>
<button class="button" type="submit">Create invitation link</button>
</form>
</section>
!${pendingInvitations.length === 0 ? '' : pendingList(pendingInvitations)}`;
  return page({ title: 'Members', ...context, current: 'members', body });
}

function newInvitation(url: string): string {
  return html`<section class="card">
<p><strong>Copy the link now. It won't be shown again.</strong> Share it only with the person you're inviting.</p>
!${copyBox({ id: 'invitation', label: 'Invitation link', text: url })}
</section>`;
}

/** The buttons have the same text in each row, so screen readers also announce the member's email address. */
function memberRow({ userId, email, role, joinedAt }: Member, id: string, isViewer: boolean): string {
  const otherRole = role === 'owner' ? 'member' : 'owner';
  return html`<tr role="row">
<td role="cell" data-label="Email" class="name"><span><span class="strong" id="${id}">${email}</span>!${isViewer ? ' <span class="muted">(you)</span>' : ''}</span></td>
<td role="cell" data-label="Role">${role}</td>
<td role="cell" data-label="Joined">!${day(joinedAt)}</td>
<td role="cell" class="end"><div class="row-buttons"><form method="post" action="/console/members/${userId}/role"><input type="hidden" name="role" value="${otherRole}"><button class="button secondary small" type="submit" aria-describedby="${id}">Make ${otherRole}</button></form>
<a class="button secondary small" href="/console/members/${userId}/remove" aria-describedby="${id}">Remove</a></div></td>
</tr>`;
}

function pendingList(invitations: readonly PendingInvitation[]): string {
  const action = '/console/members/withdraw-invitations';
  const rows = invitations.map(
    ({ id, role, inviter, createdAt, expiresAt }, index) => html`<tr role="row">
<td role="cell" data-label="Role" id="invitation-${index}">${role}</td>
<td role="cell" data-label="Created by" class="by">!${inviter === null ? '<span class="muted">Command line</span>' : html`${inviter}`}</td>
<td role="cell" data-label="Created" class="when">!${moment(createdAt)}</td>
<td role="cell" data-label="Expires" class="when">!${moment(expiresAt)}</td>
<td role="cell" class="end"><form method="post" action="${action}"><input type="hidden" name="invitation" value="${id}"><button class="button secondary small" type="submit" aria-describedby="invitation-${index}">Withdraw</button></form></td>
</tr>`,
  );
  const columns = [['Role'], ['Created by'], ['Created (UTC)'], ['Expires (UTC)'], ['Action', 'end']] as const;
  const withdrawAll = html`<form method="post" action="${action}"><button class="button secondary" type="submit">Withdraw all</button></form>`;
  return html`<section class="card">
<h2>Pending invitations</h2>
!${table({ label: 'Pending invitations', columns, rows })}
!${invitations.length > 1 ? withdrawAll : ''}
</section>`;
}

export function removeMemberPage({ userId, email, role, joinedAt }: Member, viewer: Page['viewer']): string {
  const title = `Remove ${email}?`;
  const body = html`<section class="card narrow">
<p>This person will be signed out immediately, and pending invitations that they created will no longer work. Their transactions stay in the history, with an ID instead of the email address. API keys keep working: revoke any keys that this person knows.</p>
<dl class="facts">
<dt>Role</dt><dd>${role}</dd>
<dt>Joined</dt><dd>!${day(joinedAt)}</dd>
</dl>
<form class="form" method="post" action="/console/members/${userId}/remove">
<div class="buttons"><button class="button danger" type="submit">Remove member</button>
<a class="button secondary" href="/console/members">Cancel</a></div>
</form>
</section>`;
  return page({ title, viewer, current: 'members', body });
}
