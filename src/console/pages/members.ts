// The members of an account, as an owner sees them: who they are, what they may do, and how one more comes in. Before
// somebody is removed, it asks.

import { html } from 'ghtml';
import type { Role } from '../../accounts/membership.ts';
import type { Instant } from '../../ledger/instant.ts';
import { day } from '../figures.ts';
import { type Page, page } from '../layout.ts';

export interface MemberView {
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
  readonly joinedAt: Instant;
}

export interface MembersView {
  readonly viewerId: string;
  /** Who came first comes first. */
  readonly members: readonly MemberView[];
  readonly pending: readonly { readonly role: Role; readonly expiresAt: Instant }[];
  /** Of an invitation that was just made; it cannot be shown again. */
  readonly link: string | null;
  readonly error: string | null;
}

export function membersPage(view: MembersView, { viewer, notice }: Pick<Page, 'viewer' | 'notice'>): string {
  return page({ title: 'Members', viewer, notice, current: 'members', body: bodyOf(view) });
}

function bodyOf({ viewerId, members, pending, link, error }: MembersView): string {
  return html`<h1>Members</h1>
<p class="muted lede">A member sees and does all that concerns keys, end users and credits. An owner also says who belongs to the account.</p>
!${error === null ? '' : html`<p class="error" role="alert">${error}</p>`}
!${link === null ? '' : invitation(link)}
<section class="card">
<h2>Who belongs to the account</h2>
<div class="scroll" role="region" aria-label="Members" tabindex="0">
<table class="table stack" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Email</th><th scope="col" role="columnheader">Role</th><th scope="col" role="columnheader">Since</th><th scope="col" role="columnheader" class="end">Change</th></tr></thead><tbody role="rowgroup">!${members.map((member, index) => rowOf(member, `member-${index}`, member.userId === viewerId))}</tbody></table>
</div>
</section>
<section class="card">
<h2>Invite somebody</h2>
<form class="form pair" method="post" action="/console/members/invite">
<div class="field"><label for="role">Role</label>
<select class="input" id="role" name="role" aria-describedby="role-hint"><option value="member">Member</option><option value="owner">Owner</option></select>
<p class="hint" id="role-hint">You get a link to hand on. It works once, for 7 days.</p></div>
<button class="button" type="submit">Make an invitation link</button>
</form>
</section>
!${pending.length === 0 ? '' : waiting(pending)}`;
}

function invitation(link: string): string {
  return html`<section class="card">
<p><strong>Copy the link now: it is shown this once.</strong> Whoever opens it first joins the account: hand it to nobody else.</p>
<p class="label" id="invitation-label">Invitation link</p>
<div class="copy-row"><code class="secret" id="invitation" role="group" aria-labelledby="invitation-label">${link}</code>
<button class="button" type="button" data-copy="invitation" hidden>Copy</button></div>
<p class="muted small" id="invitation-copied" role="status"></p>
</section>`;
}

/** The buttons say what they do; whom they do it to is described by the address beside them. */
function rowOf({ userId, email, role, joinedAt }: MemberView, id: string, isViewer: boolean): string {
  const other = role === 'owner' ? 'member' : 'owner';
  return html`<tr role="row">
<td role="cell" data-label="Email"><span><span class="strong" id="${id}">${email}</span>!${isViewer ? ' <span class="muted">(you)</span>' : ''}</span></td>
<td role="cell" data-label="Role">${role}</td>
<td role="cell" data-label="Since">!${day(joinedAt)}</td>
<td role="cell" class="end"><div class="row-buttons"><form method="post" action="/console/members/${userId}/role"><input type="hidden" name="role" value="${other}"><button class="button secondary small" type="submit" aria-describedby="${id}">Make ${other}</button></form>
<a class="button secondary small" href="/console/members/${userId}/remove" aria-describedby="${id}">Remove</a></div></td>
</tr>`;
}

function waiting(pending: MembersView['pending']): string {
  const lines = pending.map(({ role, expiresAt }) => html`<li>${role}, until !${day(expiresAt)}</li>`);
  return html`<section class="card">
<h2>Invitations not used yet</h2>
<ul class="plain">!${lines}</ul>
<form method="post" action="/console/members/withdraw-invitations"><button class="button secondary" type="submit">Withdraw all</button></form>
</section>`;
}

export function removeMemberPage(member: MemberView, { viewer }: Pick<Page, 'viewer'>): string {
  const { userId, email, role, joinedAt } = member;
  return page({
    title: `Remove ${email}?`,
    viewer,
    notice: null,
    current: 'members',
    body: html`<h1>Remove ${email}?</h1>
<section class="card narrow">
<p>All sessions of this person end at once. What they did stays in the record, by an id instead of the address. API keys go on working: revoke those that this person knows.</p>
<dl class="facts">
<dt>Role</dt><dd>${role}</dd>
<dt>Since</dt><dd>!${day(joinedAt)}</dd>
</dl>
<form class="form" method="post" action="/console/members/${userId}/remove">
<div class="buttons"><button class="button danger" type="submit">Remove</button>
<a class="button secondary" href="/console/members">Keep</a></div>
</form>
</section>`,
  });
}
