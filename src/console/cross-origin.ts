// Detects requests that another website made a browser send (cross-site request forgery). Checks the header
// `Sec-Fetch-Site`, or `Origin` for older browsers, which do not send `Sec-Fetch-Site`. A request with neither header
// does not come from a browser and carries no cookies of a user, so it is allowed. In addition, the session cookie is
// SameSite=Lax.

import type { IncomingHttpHeaders } from 'node:http';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @param publicUrl the public origin of Scrip, if a proxy hides it from the `Host` header */
export function isCrossOrigin(method: string, headers: IncomingHttpHeaders, publicUrl: string | null): boolean {
  if (SAFE_METHODS.has(method)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // Browsers send `Origin: null` if they hide the origin of a page.
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== normalizedHost(host) && (publicUrl === null || from !== new URL(publicUrl).host);
}

/** Returns the host in lower case and without the default port. */
function normalizedHost(host: string | undefined): string | null {
  return host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).host : null;
}
