// Detects requests that another website made a browser send: by `Sec-Fetch-Site`, or in older browsers by `Origin`. A
// client that sends neither is not a browser, has no cookies of a user, and is let through. In addition, the session
// cookie is SameSite=Lax.

import type { IncomingHttpHeaders } from 'node:http';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @param publicUrl the public origin of Scrip, if a proxy hides it from the `Host` header */
export function isCrossOrigin(method: string, headers: IncomingHttpHeaders, publicUrl: string | null): boolean {
  if (SAFE_METHODS.has(method)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // Browsers send `null` for pages whose origin they hide.
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== normalizedHost(host) && (publicUrl === null || from !== new URL(publicUrl).host);
}

/** In lower case and without a default port. */
function normalizedHost(host: string | undefined): string | null {
  return host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).host : null;
}
