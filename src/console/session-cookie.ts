// The cookies of the console. The session cookie depends on the connection:
//
//   PUBLIC_URL=https://…              __Host-scrip_session, Secure
//   plain HTTP on this machine        scrip_session
//   plain HTTP from another machine   no cookie, because anyone on the network could read it

import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../accounts/loopback.ts';
import { THEMES, type Theme } from './layout.ts';

export interface SessionCookie {
  readonly name: string;
  readonly attributes: string;
}

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax';
const SECURE: SessionCookie = { name: '__Host-scrip_session', attributes: `${ATTRIBUTES}; Secure` };
const LOOPBACK: SessionCookie = { name: 'scrip_session', attributes: ATTRIBUTES };

/** Returns null if the browser would send the cookie unencrypted over a network. */
export function sessionCookie(publicUrl: string | null, headers: IncomingHttpHeaders): SessionCookie | null {
  const { host } = headers;
  if (publicUrl?.startsWith('https:')) return isLoopback(host) || isEncrypted(publicUrl, headers) ? SECURE : null;
  return isLoopback(host) ? LOOPBACK : null;
}

/**
 * Whether a browser that shows `publicUrl` can have sent these headers. A browser sends `Sec-Fetch-Site` only over HTTPS
 * or to its own machine. An old browser does not send this header, but the proxy adds `X-Forwarded-For`.
 */
function isEncrypted(publicUrl: string, headers: IncomingHttpHeaders): boolean {
  return (
    headers['sec-fetch-site'] !== undefined ||
    headers['x-forwarded-for'] !== undefined ||
    headers.host?.toLowerCase() === new URL(publicUrl).host
  );
}

/** Sets no `Max-Age`: the server decides when a session ends, and most browsers delete the cookie when they close. */
export function setCookie({ name, attributes }: SessionCookie, token: string): string {
  return `${name}=${token}; ${attributes}`;
}

export function clearCookie({ name, attributes }: SessionCookie): string {
  return `${name}=; ${attributes}; Max-Age=0`;
}

const THEME_COOKIE = 'scrip_theme';
const YEAR_SECONDS = 31_536_000;

/**
 * Sets the theme cookie, which signing out does not clear.
 *
 * @param session the theme cookie gets the attributes of this session cookie
 */
export function setTheme(theme: Theme, session: SessionCookie | null): string {
  const age = theme === 'system' ? 0 : YEAR_SECONDS;
  return `${THEME_COOKIE}=${theme}; ${session?.attributes ?? ATTRIBUTES}; Max-Age=${age}`;
}

export function readTheme(header: string | undefined): Theme {
  const chosen = readCookie({ name: THEME_COOKIE }, header);
  return THEMES.find((theme) => theme === chosen) ?? 'system';
}

export function readCookie({ name }: Pick<SessionCookie, 'name'>, header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}
