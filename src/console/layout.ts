// What all pages have in common: the head, the navigation, whose account it is, and the way out.

import { html } from 'ghtml';

export interface Page {
  readonly title: string;
  readonly viewer: { readonly email: string; readonly accountName: string; readonly role: 'owner' | 'member' } | null;
  readonly current: 'overview' | 'end-users' | 'api-keys' | 'members' | null;
  readonly notice: string | null;
  readonly body: string;
}

const PLACES = [
  ['overview', 'Overview'],
  ['end-users', 'End users'],
  ['api-keys', 'API keys'],
] as const;

export function page({ title, viewer, current, notice, body }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · Scrip</title></head>
<body>
!${viewer ? header(viewer, current) : ''}
<main>
<h1>${title}</h1>
!${notice === null ? '' : html`<p class="notice" role="status">${notice}</p>`}
!${body}
</main>
</body>
</html>
`;
}

function header(viewer: NonNullable<Page['viewer']>, current: Page['current']): string {
  const places: readonly (readonly [string, string])[] =
    viewer.role === 'owner' ? [...PLACES, ['members', 'Members']] : PLACES;
  const links = places.map(([place, name]) => {
    const mark = place === current ? ' aria-current="page"' : '';
    return html`<a href="/console/${place}"!${mark}>${name}</a>`;
  });
  return html`<header><nav aria-label="Console">!${links.join(' ')}</nav>
<p class="muted">${viewer.accountName} · ${viewer.email} · <a href="/console/password">Change password</a></p>
<form method="post" action="/console/sign-out"><button class="button secondary">Sign out</button></form></header>`;
}
