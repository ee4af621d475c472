// The frame around every page of the console: the head, the way around for who is signed in, what was just done, and
// the page itself. It loads a stylesheet and a script from this origin and nothing else.

import { html } from 'ghtml';
import { ICON, SCRIPT, STYLESHEET } from './assets/asset-files.ts';

export interface Page {
  readonly title: string;
  /** Null when nobody is signed in. */
  readonly viewer: { readonly email: string; readonly accountName: string; readonly role: 'owner' | 'member' } | null;
  /** The place in the navigation that the page belongs to. */
  readonly current: 'overview' | 'end-users' | 'api-keys' | 'members' | null;
  /** What was just done, in a sentence. */
  readonly notice: string | null;
  /** Trusted HTML. Its heading is the title, unless it brings its own `<h1>`. */
  readonly body: string;
}

/** Nothing inline, nothing from elsewhere, and no page of another origin around ours. */
export const CONTENT_SECURITY_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  scriptSrc: ["'self'"],
  imgSrc: ["'self'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
  baseUri: ["'none'"],
};

const PLACES = [
  { key: 'overview', path: '/console/overview', label: 'Overview', icon: 'M3 17V9m6 8V3m6 14v-6' },
  {
    key: 'end-users',
    path: '/console/end-users',
    label: 'End users',
    icon: 'M9 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm-6 8c0-3 2.7-5 6-5s6 2 6 5',
  },
  {
    key: 'api-keys',
    path: '/console/api-keys',
    label: 'API keys',
    icon: 'M6 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm2.2-5.2L15 3m-2.5 2.5L15 8',
  },
  {
    key: 'members',
    path: '/console/members',
    label: 'Members',
    icon: 'M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-5 7c0-2.6 2.2-4.3 5-4.3s5 1.7 5 4.3M12 4.3a2.5 2.5 0 0 1 0 4.5M13.5 12c2 .5 3 2 3 4',
  },
] as const;

export function page({ title, viewer, current, notice, body }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Scrip</title>
<link rel="icon" href="${ICON.url}" type="image/svg+xml">
<link rel="stylesheet" href="${STYLESHEET.url}">
<script src="${SCRIPT.url}" defer></script>
</head>
<body class="${viewer === null ? 'signed-out' : 'signed-in'}">
<a class="skip" href="#content">Skip to content</a>
<header class="bar">
<a class="brand" href="${viewer === null ? '/console/sign-in' : '/console/overview'}">!${BRAND}Scrip</a>
!${viewer === null ? door(title, body) : wayAround(viewer, current)}
</header>
<main id="content" tabindex="-1">
!${notice === null ? '' : html`<p class="notice" role="status">${notice}</p>`}
!${body.includes('<h1') ? body : html`<h1>${title}</h1>!${body}`}
</main>
</body>
</html>
`;
}

const BRAND =
  '<svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M8 11h16M8 16h11M8 21h6"/></svg>';

/**
 * The way in, where the page does not offer it itself: the same link twice is one too many, also for who hears it. Signing
 * up may be closed, so the page on which one signs in offers it, or does not.
 */
function door(title: string, body: string): string {
  const isOffered = title === 'Sign in' || body.includes('href="/console/sign-in"');
  return isOffered ? '' : '<nav class="doors" aria-label="Account"><a href="/console/sign-in">Sign in</a></nav>';
}

/** Members of the account are its owners' business. */
function wayAround({ email, accountName, role }: NonNullable<Page['viewer']>, current: Page['current']): string {
  return html`<p class="account">${accountName}</p>
<nav class="places" aria-label="Console">
!${PLACES.filter(({ key }) => key !== 'members' || role === 'owner').map(
    ({ key, path, label, icon }) =>
      html`<a href="${path}"!${key === current ? ' aria-current="page"' : ''}><svg viewBox="0 0 18 20" width="16" height="18" aria-hidden="true"><path d="${icon}"/></svg>${label}</a>`,
  )}
</nav>
<div class="who">
<p class="email" title="${email}">${email}</p>
<a class="button quiet" href="/console/password">Change password</a>
<form method="post" action="/console/sign-out"><button class="button quiet" type="submit">Sign out</button></form>
</div>`;
}
