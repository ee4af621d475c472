// The members of an account, as an owner sees them: who they are, what they may do, and how one more comes in.

import { html } from 'ghtml';

type Role = 'owner' | 'member';

export interface MembersData {
  readonly viewerId: string;
  readonly members: readonly {
    readonly userId: string;
    readonly email: string;
    readonly role: Role;
    readonly joinedAt: number;
  }[];
  readonly pending: readonly { readonly role: Role; readonly expiresAt: number }[];
  /** Of an invitation that was just made; it cannot be shown again. */
  readonly link: string | null;
  readonly error: string | null;
}

const day = (instant: number): string => new Date(instant).toISOString().slice(0, 10);

export function membersPage({ viewerId, members, pending, link, error }: MembersData): string {
  return html`!${error === null ? '' : html`<p class="error" role="alert">${error}</p>`}
!${link === null ? '' : invitation(link)}
<table class="table">
<thead><tr><th scope="col">Email</th><th scope="col">Role</th><th scope="col">Since</th><th scope="col">Change</th></tr></thead>
<tbody>!${members.map((member) => row(member, member.userId === viewerId)).join('')}</tbody>
</table>
<h2>Invite</h2>
<form class="form card" method="post" action="/console/members/invite">
<div class="field"><label for="role">Role</label>
<select class="input" id="role" name="role"><option value="member">Member</option><option value="owner">Owner</option></select></div>
<button class="button">Make an invitation link</button>
<p class="muted">It works once, for 7 days. An owner also invites, removes, and changes roles.</p>
</form>
!${pending.length === 0 ? '' : waiting(pending)}`;
}

function invitation(link: string): string {
  return html`<div class="card">
<label for="invitation">Invitation link, shown this once</label>
<input class="input" id="invitation" value="${link}" readonly>
<p class="muted">Whoever opens it first becomes a member. Hand it to nobody else.</p>
</div>`;
}

function row({ userId, email, role, joinedAt }: MembersData['members'][number], isViewer: boolean): string {
  const other = role === 'owner' ? 'member' : 'owner';
  return html`<tr><td>${email}!${isViewer ? ' <span class="muted">(you)</span>' : ''}</td><td>${role}</td><td>${day(joinedAt)}</td><td>
<form method="post" action="/console/members/${userId}/role"><input type="hidden" name="role" value="${other}"><button class="button secondary">Make ${other}</button></form>
<form method="post" action="/console/members/${userId}/remove"><button class="button danger">Remove</button></form>
</td></tr>`;
}

function waiting(pending: MembersData['pending']): string {
  const lines = pending.map(({ role, expiresAt }) => html`<li>${role}, until ${day(expiresAt)}</li>`);
  return html`<h2>Invitations not used yet</h2>
<ul>!${lines.join('')}</ul>
<form method="post" action="/console/members/withdraw-invitations"><button class="button secondary">Withdraw all</button></form>`;
}
