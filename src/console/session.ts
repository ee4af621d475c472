// The cookie of a session: where it may be set at all, under which name, and how it is read.
//
//   PUBLIC_URL=https://…             __Host-scrip_session, Secure
//   plain http, this machine only    scrip_session
//   plain http from elsewhere        none: whoever is on the way could read it

export interface SessionCookie {
  readonly name: string;
  readonly attributes: string;
}

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax';
const SECURE: SessionCookie = { name: '__Host-scrip_session', attributes: `${ATTRIBUTES}; Secure` };
const LOOPBACK: SessionCookie = { name: 'scrip_session', attributes: ATTRIBUTES };

const LOOPBACK_HOST = /^(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** Whether a browser that sends this `Host` talks to its own machine. */
export function isLoopback(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

/** Null where a cookie would travel in the clear. */
export function sessionCookie(publicUrl: string | null, host: string | undefined): SessionCookie | null {
  if (publicUrl?.startsWith('https:')) return SECURE;
  return isLoopback(host) ? LOOPBACK : null;
}

/** Without `Max-Age`: the server says when a session ends, and the browser forgets it at its own end at the latest. */
export function setCookie({ name, attributes }: SessionCookie, secret: string): string {
  return `${name}=${secret}; ${attributes}`;
}

export function clearCookie({ name, attributes }: SessionCookie): string {
  return `${name}=; ${attributes}; Max-Age=0`;
}

/** Null when there is none. */
export function readCookie({ name }: SessionCookie, header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}
