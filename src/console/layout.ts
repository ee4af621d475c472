// The HTML document around every page of the console, and the error page.

import { html } from 'ghtml';
import type { Role } from '../accounts/membership.ts';
import { ICON, SCRIPT, STYLESHEET } from './assets/asset-files.ts';

/** The signed-in user, with the account to which the user belongs. */
export interface Viewer {
  readonly userId: string;
  readonly email: string;
  readonly account: number;
  readonly accountName: string;
  readonly role: Role;
}

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export interface Page {
  readonly title: string;
  /** Null when no user is signed in. */
  readonly viewer: Pick<Viewer, 'userId' | 'email' | 'accountName' | 'role'> | null;
  readonly current?: (typeof SECTIONS)[number]['key'] | 'account';
  readonly notice?: string | null;
  /** Trusted HTML. If it contains no `<h1>`, the title is added as the `<h1>`. */
  readonly body: string;
}

export type PageContext = Required<Pick<Page, 'viewer' | 'notice'>>;

export const CONTENT_SECURITY_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  scriptSrc: ["'self'"],
  imgSrc: ["'self'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
  baseUri: ["'none'"],
};

const SECTIONS = [
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
  { key: 'webhooks', path: '/console/webhooks', label: 'Webhooks', icon: 'M2.5 9.5 15.5 4l-4 12.5-3-5Zm6 2 7-7.5' },
  {
    key: 'members',
    path: '/console/members',
    label: 'Members',
    icon: 'M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-5 7c0-2.6 2.2-4.3 5-4.3s5 1.7 5 4.3M12 4.3a2.5 2.5 0 0 1 0 4.5M13.5 12c2 .5 3 2 3 4',
  },
  { key: 'api-reference', path: '/docs', label: 'API reference', icon: 'M4 3h7l3 3v11H4Zm7 0v3h3M7 10h4M7 13h4' },
] as const;

export function page({ title, viewer, current, notice = null, body }: Page): string {
  const text = html`<!doctype html>
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
<a class="brand" href="${viewer === null ? '/console/sign-in' : '/console/overview'}">!${LOGO}Scrip</a>
!${viewer === null ? '' : navigation(viewer, current)}
</header>
<main id="content" tabindex="-1">
!${notice === null ? '' : html`<p class="notice" role="status">${notice}</p>`}
!${body.includes('<h1') ? body : html`<h1>${title}</h1>!${body}`}
</main>
</body>
</html>
`;
  return viewer === null ? text : withUser(text, viewer.userId);
}

/** The field of every form that changes something: the user for whom the page with the form was loaded. */
export const USER_FIELD = 'user';
export const USER_INPUT = new RegExp(`<input type="hidden" name="${USER_FIELD}" value="[^"]*">`);

function withUser(page: string, userId: string): string {
  const input = html`<input type="hidden" name="${USER_FIELD}" value="${userId}">`;
  return page.replaceAll(/<form\b[^>]* method="post"[^>]*>/g, (form) => form + input);
}

export function themed(page: string, theme: Theme): string {
  return theme === 'system' ? page : page.replace('<html lang="en">', `<html lang="en" data-theme="${theme}">`);
}

export interface ErrorView {
  readonly title: string;
  /** What went wrong, and what the user can do. */
  readonly detail: string;
  /** The ID of the request in the log. Users can report this ID to the operator. Absent if nothing was logged. */
  readonly requestId?: string;
  /** The form that the user has sent, and can send again. */
  readonly form?: SafeForm | null;
}

/** A form that takes effect only once, even if it is sent twice. */
export interface SafeForm {
  readonly action: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export function errorPage({ title, detail, requestId, form = null }: ErrorView, viewer: Page['viewer']): string {
  // If the session could not be read, the user might be signed in. `/console` leads to the right page.
  const [path, label] = viewer === null ? ['/console', 'Open the console'] : ['/console/overview', 'Go to overview'];
  const body = html`<section class="card narrow">
<p>${detail}</p>
!${requestId === undefined ? '' : html`<p class="muted small">Request ID <span class="mono">${requestId}</span></p>`}
<div class="buttons">!${form === null ? '' : formToSendAgain(form)}<a class="button secondary" href="${path}">${label}</a></div>
</section>`;
  return page({ title, viewer, body });
}

function formToSendAgain({ action, fields }: SafeForm): string {
  const inputs = fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
  return html`<form method="post" action="${action}">!${inputs}<button class="button" type="submit">Submit again</button></form>`;
}

const LOGO =
  '<svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M8 11h16M8 16h11M8 21h6"/></svg>';

function navigation({ email, accountName, role }: NonNullable<Page['viewer']>, current: Page['current']): string {
  const sections = SECTIONS.filter(({ key }) => key !== 'members' || role === 'owner');
  return html`<p class="account">${accountName}</p>
<nav class="sections" aria-label="Console">
!${sections.map(
    ({ key, path, label, icon }) =>
      html`<a href="${path}"!${key === current ? ' aria-current="page"' : ''}><svg viewBox="0 0 18 20" width="16" height="18" aria-hidden="true"><path d="${icon}"/></svg>${label}</a>`,
  )}
</nav>
<div class="user">
<p class="email" title="${email}">${email}</p>
<a class="button quiet" href="/console/account"!${current === 'account' ? ' aria-current="page"' : ''}>Account</a>
<form method="post" action="/console/sign-out"><button class="button quiet" type="submit">Sign out</button></form>
</div>`;
}
