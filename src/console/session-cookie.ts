// The session cookie: its name and attributes, and how it is read and set.
//
//   PUBLIC_URL=https://…              __Host-scrip_session, Secure
//   plain HTTP on this machine        scrip_session
//   plain HTTP from another machine   none: anyone on the network could read it

export interface SessionCookie {
  readonly name: string;
  readonly attributes: string;
}

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax';
const SECURE: SessionCookie = { name: '__Host-scrip_session', attributes: `${ATTRIBUTES}; Secure` };
const LOOPBACK: SessionCookie = { name: 'scrip_session', attributes: ATTRIBUTES };

const LOOPBACK_HOST = /^(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** Whether a browser that sends this `Host` runs on the same machine as Scrip. */
export function isLoopback(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

/** Null where the cookie would be sent unencrypted. */
export function sessionCookie(publicUrl: string | null, host: string | undefined): SessionCookie | null {
  if (publicUrl?.startsWith('https:')) return SECURE;
  return isLoopback(host) ? LOOPBACK : null;
}

/** Without `Max-Age`: the server decides when a session ends, and browsers drop the cookie when they close. */
export function setCookie({ name, attributes }: SessionCookie, token: string): string {
  return `${name}=${token}; ${attributes}`;
}

export function clearCookie({ name, attributes }: SessionCookie): string {
  return `${name}=; ${attributes}; Max-Age=0`;
}

/** @param header the `Cookie` header of a request */
export function readCookie({ name }: SessionCookie, header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}
